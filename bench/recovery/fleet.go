package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// The live run's city is one square, and its fleet jumps in and out of it:
// each location makes one trigger.
const (
	liveDevices = 4000
	liveCity    = `{"type":"FeatureCollection","features":[{"type":"Feature","id":"square","properties":{},
 "geometry":{"type":"Polygon","coordinates":[[[4,52],[5,52],[5,53],[4,53],[4,52]]]}}]}`
)

// drive publishes locations, as many per second as the scenario's traffic,
// until ctx ends.
func drive(ctx context.Context, nc *nats.Conn, perSecond float64, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	began, next := time.Now(), time.Duration(0)
	var fixes [liveDevices]int
	var last [liveDevices]int64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		for ; next <= time.Since(began); next += time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second)) {
			i := rng.IntN(liveDevices)
			lat := 52.5
			if fixes[i]%2 == 1 {
				lat = 51.5
			}
			fixes[i]++
			last[i] = max(last[i]+1, time.Now().UnixMilli())
			fix := fmt.Appendf(nil, `{"lat":%g,"lon":4.5,"ts":%d}`, lat, last[i])
			if err := nc.Publish(fmt.Sprintf("location.van-%d", i), fix); err != nil {
				return fmt.Errorf("publishing a location: %w", err)
			}
		}
		timer.Reset(next - time.Since(began))
	}
}

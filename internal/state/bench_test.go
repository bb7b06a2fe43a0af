package state_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

// BenchmarkClaim loads the presences of a whole fleet, all partitions at
// once. The fleet has 100,000 devices, or TRIPLINE_BENCH_DEVICES.
func BenchmarkClaim(b *testing.B) {
	const partitions = 16
	devices := 100_000
	if s := os.Getenv("TRIPLINE_BENCH_DEVICES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		devices = n
	}
	js := natstest.Start(b).JetStream(b)
	cfg := config(partitions)
	cfg.MaxBytes = 4 << 30
	s := open(b, js, cfg)
	encoded := make([]byte, 160)
	each(b, partitions, func(p int) error {
		if _, err := s.Claim(b.Context(), p); err != nil {
			return err
		}
		step := router.Progress{Offset: 1}
		for i := p; i < devices; i += partitions {
			step.Presences = append(step.Presences, router.DevicePresence{Device: fmt.Sprint("fleet.device-", i), Encoded: encoded})
		}
		return s.Commit(b.Context(), p, step)
	})
	for b.Loop() {
		var mu sync.Mutex
		n := 0
		each(b, partitions, func(p int) error {
			saved, err := s.Claim(b.Context(), p)
			mu.Lock()
			n += len(saved.Presences)
			mu.Unlock()
			return err
		})
		if n != devices {
			b.Fatalf("loaded %d devices of %d", n, devices)
		}
	}
	b.ReportMetric(float64(devices)*float64(b.N)/b.Elapsed().Seconds(), "devices/s")
}

// BenchmarkCommit stores steps of 200 presences.
func BenchmarkCommit(b *testing.B) {
	s := open(b, natstest.Start(b).JetStream(b), config(1))
	claim(b, s, 0)
	step := router.Progress{Offset: 1}
	for i := range 200 {
		step.Presences = append(step.Presences, router.DevicePresence{Device: fmt.Sprint("fleet.device-", i), Encoded: make([]byte, 160)})
	}
	for b.Loop() {
		step.Offset++
		commit(b, s, 0, step)
	}
	b.ReportMetric(200*float64(b.N)/b.Elapsed().Seconds(), "presences/s")
}

func each(b *testing.B, n int, f func(int) error) {
	b.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

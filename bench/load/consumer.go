package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// outPrefix begins the subjects of the NATS sinks; the consumer's name follows.
const outPrefix = "load.out."

// consumerRole is all consumers: for each sink it notes how long after the
// fix was due its trigger arrived.
type consumerRole struct {
	nc     *nats.Conn
	server *http.Server
	hung   chan struct{} // closed at the end: what hung calls wait for

	mu       sync.Mutex // guards what follows
	schedule schedule   // no latencies while it is zero
	sinks    map[string]*arrivals
}

// arrivals is what one consumer got.
type arrivals struct {
	count     int
	latencies []int64 // ns
}

// latency sums up the latencies of one consumer, in milliseconds.
type latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

func (c *consumerRole) operations() map[string]operation {
	return map[string]operation{
		"start":   op(c.start),
		"connect": op(c.connect),
		"expect":  op(c.expect),
		"taken":   op(c.taken),
		"read":    op(func(context.Context, struct{}) (any, error) { return readUsage(0), nil }),
	}
}

// start listens, and returns the base URL of the webhooks.
func (c *consumerRole) start(context.Context, struct{}) (any, error) {
	c.sinks = map[string]*arrivals{}
	c.hung = make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(l) }() // ends with close, and nothing else ends it
	return "http://" + l.Addr().String(), nil
}

// connect takes the triggers of the NATS sinks.
func (c *consumerRole) connect(_ context.Context, url string) (_ any, err error) {
	if c.nc, err = nats.Connect(url, nats.Name("load/consumer")); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err = c.nc.Subscribe(outPrefix+"*", func(m *nats.Msg) {
		c.arrived(strings.TrimPrefix(m.Subject, outPrefix), m.Data)
	}); err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	return nil, c.nc.Flush()
}

func (c *consumerRole) close() {
	if c.hung != nil {
		close(c.hung)
	}
	if c.server != nil {
		c.server.Close()
	}
	if c.nc != nil {
		c.nc.Close()
	}
}

// ServeHTTP takes /ok/NAME at once, and never answers /hang/NAME.
func (c *consumerRole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if strings.HasPrefix(r.URL.Path, "/hang/") {
		select {
		case <-r.Context().Done():
		case <-c.hung:
		}
		return
	}
	c.arrived(strings.TrimPrefix(r.URL.Path, "/ok/"), body)
	w.WriteHeader(http.StatusNoContent)
}

// arrival is what is read of a trigger.
type arrival struct {
	Data struct {
		Device string
		Fix    struct{ TS time.Time }
	}
}

func (c *consumerRole) arrived(sink string, body []byte) {
	now := time.Now().UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.sinks[sink]
	if a == nil {
		a = new(arrivals)
		c.sinks[sink] = a
	}
	a.count++
	if c.schedule.Interval == 0 {
		return
	}
	var got arrival
	if json.Unmarshal(body, &got) != nil {
		return
	}
	if due, err := c.schedule.due(got.Data.Device, got.Data.Fix.TS.UnixMilli()); err == nil {
		a.latencies = append(a.latencies, now-due)
	}
}

// due finds when a device's fix was due from its ts, which is that time
// rounded down to milliseconds.
func (s schedule) due(device string, ts int64) (int64, error) {
	d, err := deviceNumber(device)
	if err != nil {
		return 0, err
	}
	if d >= s.Devices {
		return 0, fmt.Errorf("device %d of %d", d, s.Devices)
	}
	n := (float64(ts)*1e6 + 5e5 - float64(s.Start)) / s.Interval // about the fix's number
	round := math.Round((n - float64(d)) / float64(s.Devices))
	if round < 0 {
		return 0, errors.New("of an earlier job")
	}
	return s.Start + int64((float64(d)+round*float64(s.Devices))*s.Interval), nil
}

// expect begins anew, with the schedule of the fixes to come.
func (c *consumerRole) expect(_ context.Context, s schedule) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedule, c.sinks = s, map[string]*arrivals{}
	return nil, nil
}

// everySink stands for all consumers together.
const everySink = "all"

// taken returns what each consumer has got.
func (c *consumerRole) taken(context.Context, struct{}) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]latency{}
	var every arrivals
	for name, a := range c.sinks {
		all[name] = summarize(a.count, a.latencies)
		every.count += a.count
		every.latencies = append(every.latencies, a.latencies...)
	}
	all[everySink] = summarize(every.count, every.latencies)
	return all, nil
}

func summarize(count int, ns []int64) latency {
	l := latency{Count: count}
	if len(ns) == 0 {
		return l
	}
	sorted := slices.Sorted(slices.Values(ns))
	l.P50, l.P99, l.P999 = rank(sorted, 0.5), rank(sorted, 0.99), rank(sorted, 0.999)
	l.Max = float64(sorted[len(sorted)-1]) / 1e6
	return l
}

// rank is the nearest-rank quantile, in milliseconds.
func rank(sorted []int64, q float64) float64 {
	n := int(math.Ceil(q * float64(len(sorted))))
	return float64(sorted[max(n, 1)-1]) / 1e6
}

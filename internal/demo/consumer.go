package demo

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// consumer is a downstream that the demo serves itself. It answers at once,
// or after a delay while it is sick, and keeps a record of what it took.
type consumer struct {
	name   string
	server *http.Server
	url    string
	delay  atomic.Int64 // nanoseconds before it answers

	mu         sync.Mutex
	taken      map[string]int    // by trigger id: how often
	sequence   map[string]string // by device: the highest taken
	duplicates int               // repeats, dropped by their sequence or id
	reordered  int               // new triggers that came behind a later one
	last       time.Time
	maxGap     time.Duration
	watching   bool // gaps count
}

func serveConsumer(name string) (*consumer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &consumer{
		name:     name,
		url:      "http://" + listener.Addr().String(),
		taken:    map[string]int{},
		sequence: map[string]string{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /triggers", c.take)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { c.work(r.Context()) })
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go c.server.Serve(listener) // ends with close
	return c, nil
}

func (c *consumer) close() { c.server.Close() }

// work takes as long as the consumer takes at the moment; false if the caller
// has hung up meanwhile.
func (c *consumer) work(ctx context.Context) bool {
	delay := time.Duration(c.delay.Load())
	if delay == 0 {
		return true
	}
	select {
	case <-time.After(delay):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (c *consumer) take(w http.ResponseWriter, r *http.Request) {
	var trigger struct {
		ID, Subject, Sequence string
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &trigger)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !c.work(r.Context()) {
		return // nobody waits for the answer: nothing was done
	}
	c.record(trigger.ID, trigger.Subject, trigger.Sequence, time.Now())
	w.WriteHeader(http.StatusNoContent)
}

func (c *consumer) record(id, device, sequence string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching {
		c.maxGap = max(c.maxGap, now.Sub(c.last))
	}
	c.last = now
	c.taken[id]++
	switch {
	case c.taken[id] > 1:
		c.duplicates++
	case sequence <= c.sequence[device]:
		c.reordered++
	default:
		c.sequence[device] = sequence
	}
}

// watch starts or ends the time in which gaps between triggers count.
func (c *consumer) watch(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && !on {
		c.maxGap = max(c.maxGap, time.Since(c.last))
	}
	c.watching, c.last = on, time.Now()
}

// missing counts the expected triggers that were not taken yet.
func (c *consumer) missing(expected map[string]struct{}) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for id := range expected {
		if c.taken[id] == 0 {
			n++
		}
	}
	return n
}

// unexpected counts the triggers taken that nobody expected.
func (c *consumer) unexpected(expected map[string]struct{}) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for id := range c.taken {
		if _, ok := expected[id]; !ok {
			n++
		}
	}
	return n
}

type tally struct {
	taken, duplicates, reordered int
	maxGap                       time.Duration
}

func (c *consumer) tally() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tally{len(c.taken), c.duplicates, c.reordered, c.maxGap}
}

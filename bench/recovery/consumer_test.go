package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// client plays calls straight to a consumer, without a breaker.
type client struct{ s *sim }

func newClient(change func(*consumerConfig)) *client {
	sc := base("test", 0)
	change(&sc.consumer)
	s := &sim{scenario: sc, pollAt: never, tickAt: never}
	s.consumer = consumer{consumerConfig: sc.consumer, s: s, rng: rand.New(rand.NewPCG(1, 1)), crowded: -1}
	return &client{s: s}
}

// burst sends n calls at once and returns when the last is answered.
func (c *client) burst(n int) time.Duration {
	began := c.s.now
	for range n {
		id := c.s.newCall()
		c.s.calls[id].begin, c.s.calls[id].working = c.s.now, true
		c.s.consumer.accept(c.s.now, id)
	}
	for len(c.s.events) > 0 {
		e := c.s.events.pop()
		c.s.now = e.at
		c.s.handle(e)
	}
	return c.s.now - began
}

func TestColdCallsQueueForTheBackend(t *testing.T) {
	c := newClient(func(*consumerConfig) {})
	if got := c.burst(8); got != 40*time.Millisecond {
		t.Errorf("8 cold calls took %v, want two rounds of 20 ms", got)
	}
	if c.s.consumer.served != 8 {
		t.Errorf("served %d", c.s.consumer.served)
	}
	c.s.consumer.served = 100_000
	if got := c.burst(8); got != 5*time.Millisecond {
		t.Errorf("8 warm calls took %v", got)
	}
}

func TestLongQueueFellsIt(t *testing.T) {
	c := newClient(func(*consumerConfig) {})
	c.burst(18) // 14 wait, after 20 ms 10, after 40 ms 6: less than 50 ms
	if n := len(c.s.consumer.fellOver); n != 0 {
		t.Errorf("fell over %d times", n)
	}
	c.burst(40)
	if n := len(c.s.consumer.fellOver); n != 1 {
		t.Fatalf("fell over %d times, want once", n)
	}
	c.s.now = c.s.consumer.fellOver[0]
	if got := c.burst(1); got != sickLatency {
		t.Errorf("a call to the fallen consumer took %v", got)
	}
	stands := newClient(func(cc *consumerConfig) { cc.fallsOver = false })
	stands.burst(40)
	if n := len(stands.s.consumer.fellOver); n != 0 {
		t.Errorf("fell over %d times without the rule", n)
	}
}

func TestServersAreFinite(t *testing.T) {
	c := newClient(func(cc *consumerConfig) { cc.servers, cc.backends = 8, 0 })
	if got := c.burst(64); got != 40*time.Millisecond {
		t.Errorf("64 calls to 8 servers took %v, want 8 rounds of 5 ms", got)
	}
	if c.s.consumer.busy != 0 {
		t.Errorf("%d servers are still busy", c.s.consumer.busy)
	}
}

func TestEventsAndRing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h events
	for range 1000 {
		h.push(event{at: time.Duration(rng.IntN(100))})
	}
	last := time.Duration(0)
	for len(h) > 0 {
		e := h.pop()
		if e.at < last {
			t.Fatalf("%v after %v", e.at, last)
		}
		last = e.at
	}
	var r ring
	next := int32(0)
	for i := range int32(500) {
		r.push(i)
		if i%3 == 0 {
			if got := r.pop(); got != next {
				t.Fatalf("popped %d, want %d", got, next)
			}
			next++
		}
	}
}

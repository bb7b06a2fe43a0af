package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// mood is how a consumer behaves for a while.
type mood uint8

const (
	well mood = iota
	slow
	failing
	hanging
	dripping
	resetting
	busy        // 429 with Retry-After
	unavailable // 503 with Retry-After
	flaky       // mostly well, and now and then any of the others
	moods
)

func (m mood) String() string {
	return [moods]string{"well", "slow", "failing", "hanging", "dripping", "resetting", "429", "503", "flaky"}[m]
}

// temper changes a consumer's mood, and decides what becomes of each call.
type temper struct {
	mu      sync.Mutex // guards all
	rng     *rand.Rand
	mood    mood
	changed chan struct{} // closed at the next change
}

func newTemper(seed, number uint64) *temper {
	return &temper{rng: rand.New(rand.NewPCG(seed, 500+number)), changed: make(chan struct{})}
}

// run changes the mood at random until ctx ends; then all is well.
func (t *temper) run(ctx context.Context) {
	for {
		t.mu.Lock()
		next, lasts := well, time.Duration(500+t.rng.IntN(4500))*time.Millisecond
		if t.rng.IntN(10) < 6 {
			next = mood(1 + t.rng.IntN(int(moods)-1))
		}
		t.mu.Unlock()
		t.set(next)
		timer := time.NewTimer(lasts)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			t.set(well)
			return
		}
	}
}

func (t *temper) set(m mood) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mood = m
	close(t.changed)
	t.changed = make(chan struct{})
}

// treatment is what becomes of one call.
type treatment struct {
	mood  mood
	delay time.Duration // before anything else
	takes bool          // it takes what it got, though it may not say so
	until <-chan struct{}
}

func (t *temper) treat() treatment {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := treatment{mood: t.mood, until: t.changed}
	if c.mood == flaky {
		c.mood = well
		if t.rng.IntN(10) < 3 {
			c.mood = mood(1 + t.rng.IntN(int(flaky)-1))
		}
	}
	switch c.mood {
	case well:
		c.delay, c.takes = time.Duration(t.rng.IntN(8))*time.Millisecond, true
	case slow:
		c.delay, c.takes = time.Duration(100+t.rng.IntN(1400))*time.Millisecond, true
	case busy, unavailable:
	default:
		c.takes = t.rng.IntN(3) == 0 // and the sender never hears of it
	}
	return c
}

// answer ends a call as the treatment wants it. What was to be taken has been.
func (c treatment) answer(w http.ResponseWriter, r *http.Request) {
	switch c.mood {
	case well, slow:
		w.WriteHeader(http.StatusNoContent)
	case failing:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case busy:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case unavailable:
		w.Header().Set("Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	case hanging:
		select {
		case <-r.Context().Done():
		case <-c.until:
		}
		panic(http.ErrAbortHandler)
	case dripping:
		c.drip(w, r)
	case resetting:
		reset(w)
	}
}

// drip answers a byte at a time, for ever.
func (c treatment) drip(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	w.WriteHeader(http.StatusOK)
	for {
		select {
		case <-ticker.C:
			fmt.Fprint(w, ".")
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// reset breaks the connection off so that the other side gets an RST.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

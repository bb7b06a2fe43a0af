package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// tally is what one run showed.
type tally struct {
	heals, end time.Duration
	trips      int             // closed to open, all
	retrips    int             // closed to open, decided by calls begun after healing
	reopens    int             // half-open to open, the same
	closes     int             // all
	windows    []time.Duration // open windows
	fell       []time.Duration // when the consumer fell over
	mostProbes int
	timeouts   int           // among calls begun after healing
	slow       int           // the same, over the limit; timeouts too
	slowSecs   int           // seconds whose P99 is over the limit
	seconds    []second      // until finish
	closedAt   time.Duration // the last close, -1 while not closed since
	drainedAt  time.Duration // when the backlog was gone after that, -1
	parked     int           // at that close
	current    breaker.State
	trace      *trace // nil: not wanted
}

// second counts the calls that began in one second after healing.
type second struct{ calls, slow int }

// call notes a call that has ended.
func (t *tally) call(begin, now time.Duration, ok bool) {
	latency := now - begin
	if t.trace != nil {
		t.trace.call(now, latency)
	}
	if begin < t.heals {
		return
	}
	i := int((begin - t.heals) / time.Second)
	for len(t.seconds) <= i {
		t.seconds = append(t.seconds, second{})
	}
	t.seconds[i].calls++
	if !ok {
		t.timeouts++
	}
	if latency > limit {
		t.slow++
		t.seconds[i].slow++
	}
}

// moved notes a transition that a call begun at decided has caused.
func (t *tally) moved(at time.Duration, to breaker.State, window, decided time.Duration, parked int) {
	from := t.current
	t.current = to
	if t.trace != nil {
		t.trace.moved(at, to)
	}
	switch to {
	case breaker.Open:
		t.windows = append(t.windows, window)
		t.closedAt, t.drainedAt = -1, -1
		if from == breaker.Closed {
			t.trips++
		}
		if decided >= t.heals {
			if from == breaker.Closed {
				t.retrips++
			} else {
				t.reopens++
			}
		}
	case breaker.Closed:
		t.closes++
		t.closedAt, t.parked = at, parked
		if parked == 0 {
			t.drainedAt = at
		}
	}
}

// closedAfter is how long after healing the breaker closed for the last time.
func (t *tally) closedAfter() time.Duration {
	switch {
	case t.current != breaker.Closed: // not within the horizon
		return t.end - t.heals
	case t.closedAt < t.heals: // it was closed before, or never open
		return 0
	}
	return t.closedAt - t.heals
}

// finish sums up what is only needed as a sum.
func (t *tally) finish() *tally {
	t.slowSecs = t.slowSeconds()
	t.seconds = nil
	return t
}

// slowSeconds counts the seconds after healing whose P99 is over the limit,
// by nearest rank.
func (t *tally) slowSeconds() int {
	n := 0
	for _, s := range t.seconds {
		if 100*s.slow > s.calls {
			n++
		}
	}
	return n
}

// drain is how long the backlog took from the last close on.
func (t *tally) drain() time.Duration {
	switch {
	case t.closedAt < 0 && t.current == breaker.Closed:
		return 0
	case t.drainedAt < 0:
		return t.end - max(t.closedAt, t.heals)
	}
	return t.drainedAt - t.closedAt
}

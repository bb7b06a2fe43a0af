package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// traceStep is the width of a column of the picture.
const traceStep = 250 * time.Millisecond

// trace is one run over time, for the picture.
type trace struct {
	states  []stateAt
	latency []time.Duration // the highest of each step, 0: no call ended
	parked  []int           // at the end of each step
}

type stateAt struct {
	at time.Duration
	to breaker.State
}

func (t *trace) call(now, latency time.Duration) {
	i := int(now / traceStep)
	for len(t.latency) <= i {
		t.latency = append(t.latency, 0)
	}
	t.latency[i] = max(t.latency[i], latency)
}

func (t *trace) moved(at time.Duration, to breaker.State) {
	t.states = append(t.states, stateAt{at, to})
}

func (t *trace) depth(now time.Duration, parked int) {
	i := int(now / traceStep)
	for len(t.parked) <= i {
		last := 0
		if n := len(t.parked); n > 0 {
			last = t.parked[n-1]
		}
		t.parked = append(t.parked, last)
	}
	t.parked[i] = parked
}

package main

import (
	"math/rand/v2"
	"time"
)

// arrivals are the live triggers of one seed: every scenario and policy gets
// the same ones, faster or slower as its traffic is, so that they are drawn
// once and kept.
type arrivals struct {
	rng  *rand.Rand
	kept []arrival
}

// arrival is a trigger: how long after the one before, at one trigger per
// second on average, and its slot.
type arrival struct {
	gap  float64
	slot int32
}

// stream returns the n-th source of randomness of a seed.
func stream(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

func newArrivals(seed uint64) *arrivals { return &arrivals{rng: stream(seed, 1)} }

// restart goes over to another seed.
func (a *arrivals) restart(seed uint64) { a.rng, a.kept = stream(seed, 1), a.kept[:0] }

// at returns the i-th arrival.
func (a *arrivals) at(i int) arrival {
	for i >= len(a.kept) {
		a.kept = append(a.kept, arrival{a.rng.ExpFloat64(), int32(a.rng.IntN(slotCount))})
	}
	return a.kept[i]
}

// traffic is a run's way through the arrivals.
type traffic struct {
	*arrivals
	seen int
	mean float64       // nanoseconds between two
	next time.Duration // when the next arrives
	slot int32         // and where
}

func newTraffic(a *arrivals, perSecond float64) traffic {
	t := traffic{arrivals: a, mean: float64(time.Second) / perSecond}
	t.advance()
	return t
}

// advance goes on to the next.
func (t *traffic) advance() {
	a := t.at(t.seen)
	t.seen++
	t.next += time.Duration(a.gap * t.mean)
	t.slot = a.slot
}

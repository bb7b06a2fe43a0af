package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// over says whether the run has shown what it can.
func (s *sim) over() bool {
	if s.now >= s.looked+100*time.Millisecond {
		s.looked = s.now
		if s.warm() {
			s.skip()
			return true
		}
	}
	if s.now > s.heals+s.scenario.horizon {
		return true
	}
	return !s.scenario.whole && s.drainedAt >= 0 && s.now > s.drainedAt+10*time.Second && s.now > s.heals+15*time.Second
}

// warm says that nothing can happen any more but that the backlog drains: the
// breaker is closed, the cache is full, every call takes the same, and nothing
// holds the workers back.
func (s *sim) warm() bool {
	c := &s.consumer
	return s.now > s.heals && s.policy.state() == breaker.Closed && s.trace == nil && !s.scenario.whole &&
		c.spread == 0 && c.lasting.share == 0 && len(c.queue) == 0 && !c.sick(s.now) &&
		c.longest(s.scenario.workers) <= limit &&
		float64(c.served) > sureWarm*c.warming && s.inFlight <= s.scenario.workers &&
		(s.ramp == nil || s.ramp.Window() == s.scenario.workers)
}

// sureWarm is how many times its warming a cache must have served for a miss
// to be out of the question: exp(-25) is 1 in 72,000,000,000.
const sureWarm = 25

// skip does the arithmetic instead of playing that.
func (s *sim) skip() {
	if s.drainedAt < 0 {
		left := float64(s.outlet.parked) / (s.scenario.capacity - s.scenario.live)
		s.drainedAt = s.now + time.Duration(left*float64(time.Second))
	}
	s.now = max(s.drainedAt, s.now)
}

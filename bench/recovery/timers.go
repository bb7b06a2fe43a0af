package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// poll asks the policy what time alone decides.
func (s *sim) poll() {
	s.deciding = inFlight
	s.schedule(s.policy.poll(s.now))
}

func (s *sim) schedule(next time.Duration) {
	if next < s.pollAt {
		s.pollAt = next
		s.push(next, poll, 0)
	}
}

// arm sets the timers that the policy and the ramp need.
func (s *sim) arm() {
	if s.pollAt == never {
		s.poll()
	}
	if s.ramp != nil && s.ramp.Active() {
		if next := s.ramp.Poll(s.now, s.outlet.parked > 0); next < s.tickAt {
			s.tickAt = next
			s.push(next, tick, 0)
		}
	}
}

// moved is told of each transition of the policy.
func (s *sim) moved(at time.Duration, to breaker.State, window time.Duration) {
	s.capped = false
	decided := s.deciding
	if decided == inFlight {
		decided = at - limit - 1
	}
	s.tally.moved(at, to, window, decided, s.outlet.parked)
	switch to {
	case breaker.Open:
		s.outlet.parkLane()
		s.pollAt = never // the window's end may be nearer
		if s.ramp != nil {
			s.ramp.End()
		}
		if s.hints && !s.checking {
			s.checking, s.passes = true, 0
			s.push(s.now+s.checkGap(), check, 0)
		}
	case breaker.Closed:
		if s.ramp != nil {
			s.ramp.Begin(s.now, s.policy.ordinary())
		}
	}
}

// The health check: every second with 20 % jitter while open.
func (s *sim) checkGap() time.Duration {
	return time.Duration(float64(time.Second) * (0.8 + 0.4*s.checks.Float64()))
}

func (s *sim) sendCheck() {
	if s.policy.state() != breaker.Open {
		s.checking = false
		return
	}
	latency := s.consumer.healthy
	if s.consumer.sick(s.now) {
		latency = sickLatency
		if s.now < s.heals && s.consumer.ill.share < 1 && s.checks.Float64() >= s.consumer.ill.share {
			latency = s.consumer.healthy
		}
	} else if s.checks.Float64() < s.consumer.lasting.share {
		latency = s.consumer.lasting.latency
	}
	if latency > limit { // the check's own timeout
		s.push(s.now+limit, checked, 0)
	} else {
		s.push(s.now+latency, checked, 1)
	}
}

func (s *sim) checkAnswered(fast bool) {
	if fast {
		s.passes++
	} else {
		s.passes = 0
	}
	if s.passes >= 2 && s.policy.state() == breaker.Open {
		s.deciding = s.now
		s.policy.hint(s.now)
		s.pollAt = never
	}
	s.push(s.now+s.checkGap()-limit, check, 0)
}

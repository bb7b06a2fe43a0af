package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// clientTimeout is what the client gives a call; p99 is its limit.
const (
	clientTimeout = 200 * time.Millisecond
	limit         = 50 * time.Millisecond
)

// call is a call in flight, at the client, at the consumer, or both.
type call struct {
	begin    time.Duration
	serial   uint32
	slot     int32
	source   breaker.Source
	waits    bool // the client does
	working  bool // the consumer does
	warms    bool // it will have warmed the cache
	served   bool // it holds one of the consumer's servers
	probe    bool // admitted while half-open
	closed   bool // admitted while closed
	ticket   ticket
	ramp     breaker.RampCall
	deadline bool // an event for the client's timeout is under way
}

// start asks the policy for one call, and makes it.
func (s *sim) start(i int32, source breaker.Source, both bool) bool {
	state := s.policy.state()
	t, ok := s.policy.admit(s.now)
	if !ok {
		return false
	}
	if after := s.policy.state(); state == breaker.Open { // it ended just now
		state = after
	}
	sl := &s.outlet.slots[i]
	sl.busy = true
	if source == breaker.Live {
		sl.waiting--
		s.outlet.lane--
	}
	id := s.newCall()
	c := &s.calls[id]
	c.begin, c.slot, c.source, c.ticket = s.now, i, source, t
	c.waits, c.working = true, true
	c.probe, c.closed = state == breaker.HalfOpen, state == breaker.Closed
	s.inFlight++
	if c.probe {
		s.probes++
		s.mostProbes = max(s.mostProbes, s.probes)
	}
	if s.ramp != nil {
		c.ramp = s.ramp.Start(s.now, source, both)
	}
	if s.send != nil {
		s.send(id)
		return true
	}
	s.consumer.accept(s.now, id)
	if c := &s.calls[id]; !c.deadline {
		c.deadline = true
		s.events.push(event{at: s.now + clientTimeout, kind: deadline, id: id, serial: c.serial})
	}
	return true
}

func (s *sim) newCall() int32 {
	s.serial++
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.calls[id] = call{serial: s.serial}
		return id
	}
	s.calls = append(s.calls, call{serial: s.serial})
	return int32(len(s.calls) - 1)
}

// answers says when the consumer answers a call. If that is known at once and
// in time, the client needs no timeout.
func (s *sim) answers(at time.Duration, id int32) {
	c := &s.calls[id]
	if at < c.begin+clientTimeout {
		c.deadline = true
	}
	s.events.push(event{at: at, kind: answer, id: id, serial: c.serial})
}

// answered takes the consumer's answer to a call.
func (s *sim) answered(id int32) {
	s.consumer.answered(s.now, id)
	if s.replied != nil {
		s.replied(id)
	}
	c := &s.calls[id]
	c.working = false
	if c.waits {
		s.ended(id, true)
		return
	}
	s.unused = append(s.unused, id)
}

// ended takes the outcome of a call.
func (s *sim) ended(id int32, ok bool) {
	c := &s.calls[id]
	c.waits = false
	s.capped = false
	s.inFlight--
	latency := s.now - c.begin
	if c.probe {
		s.probes--
	}
	s.tally.call(c.begin, s.now, ok)
	if s.ramp != nil {
		s.ramp.Done(s.now, c.ramp)
	}
	s.deciding = c.begin
	s.policy.report(s.now, c.ticket, ok, latency)
	s.settle(c, ok)
	if !c.working {
		s.unused = append(s.unused, id)
	}
}

// settle gives the slot of a call back.
func (s *sim) settle(c *call, ok bool) {
	o, i := &s.outlet, c.slot
	sl := &o.slots[i]
	sl.busy = false
	switch {
	case ok && c.source == breaker.Backlog:
		o.unpark(i)
		if o.parked == 0 && s.now >= s.heals && s.closedAt >= 0 && s.drainedAt < 0 {
			s.drainedAt = s.now
		}
	case ok:
	default:
		if c.source == breaker.Live {
			o.park(i)
			o.parkSlot(i)
		}
		if c.closed {
			sl.attempts++
			sl.delayed = true
			s.push(s.now+retryDelay(sl.attempts), retry, i)
		} else {
			s.failures++
			sl.failed = s.failures
		}
	}
	o.offer(i)
	o.offerLive(i)
}

package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// offer takes a trigger. It returns false, and has not taken it, when what
// waits outside the lane has reached its bound: then it is to be offered
// again when there is room. What is offered to a partition that was given up
// stays unsettled for good.
func (c *core) offer(now time.Duration, e *entry) bool {
	if c.gone[e.trigger.Partition] {
		return true
	}
	s := c.slot(Slot{e.trigger.Partition, e.trigger.Slot})
	p := c.partitions[s.id.Partition]
	inLane := s.state == live && p.owned && !p.closing
	if inLane {
		e.reason = c.refusal()
		inLane = e.reason == ""
	} else {
		e.reason = c.followUp()
	}
	if !inLane && c.outside > 0 && c.outside+e.size > c.cfg.MaxWaiting {
		if s.idle() {
			c.forget(s)
		}
		return false
	}
	switch {
	case inLane:
		c.queueCall(now, s, e)
	case s.state == live && p.owned:
		c.queueCall(now, s, e)
		c.divert(now, s, e.reason)
	default:
		c.enqueue(s, e)
	}
	c.hand()
	return true
}

// redrive takes a trigger that is to be parked after all that its slot has.
func (c *core) redrive(now time.Duration, e *entry) {
	if c.gone[e.trigger.Partition] {
		return
	}
	e.reason = ReasonRedrive
	s := c.slot(Slot{e.trigger.Partition, e.trigger.Slot})
	if s.state == live && c.partitions[s.id.Partition].owned {
		c.queueCall(now, s, e)
		c.divert(now, s, "")
	} else {
		c.enqueue(s, e)
	}
	c.hand()
}

// queueCall appends a trigger to a live slot.
func (c *core) queueCall(now time.Duration, s *slot, e *entry) {
	s.run.push(e)
	c.lane++
	if s.run.n == 1 {
		c.file(now, s, false)
	}
}

// enqueue appends a trigger to a slot whose triggers don't wait in the lane.
func (c *core) enqueue(s *slot, e *entry) {
	s.run.push(e)
	c.outside += e.size
	c.outCount++
	c.queuePark(s)
}

// refusal says why the trigger of a live slot can't wait in the lane, "" if
// it can.
func (c *core) refusal() Reason {
	switch {
	case c.disabled:
		return ReasonDisabled
	case c.stopping:
		return ReasonShutdown
	case c.state == breaker.Open:
		return ReasonOpen
	case c.probesBacklog():
		return ReasonProbeCap
	case c.ramp.Active() && c.lane >= c.ramp.Lane(c.cfg.Lane):
		return ReasonRamp
	case c.lane >= c.cfg.Lane:
		return ReasonLaneFull
	}
	return ""
}

// followUp says why the trigger of a slot that isn't live is parked. What
// keeps the slot from being replayed says more than that it comes after
// others.
func (c *core) followUp() Reason {
	switch {
	case c.disabled:
		return ReasonDisabled
	case c.stopping:
		return ReasonShutdown
	case c.state == breaker.Open:
		return ReasonOpen
	case c.state == breaker.HalfOpen:
		return ReasonProbeCap
	}
	return ReasonOrder
}

// probesBacklog says that the probes are taken from the queue, so that a live
// trigger is none.
func (c *core) probesBacklog() bool {
	return c.state == breaker.HalfOpen && c.parking > 0 && !c.paused
}

// divert makes a live slot park all that it has, the oldest first: at once,
// or at the outcome of its call in flight. The reason is that of each of its
// triggers; "" leaves those that they have, with ReasonOrder for none.
func (c *core) divert(now time.Duration, s *slot, why Reason) {
	if s.state == parking {
		return
	}
	if s.state == live {
		c.lane -= s.run.n
		for e := s.run.first; e != nil; e = e.next {
			c.outside += e.size
			c.outCount++
			if why != "" {
				e.reason = why
			}
		}
	}
	if s.busy {
		s.state = leaving
		return
	}
	s.state = parking
	c.parking++
	for e := s.run.first; e != nil; e = e.next {
		if e.reason == "" {
			e.reason = ReasonOrder
		}
	}
	c.queuePark(s)
	c.file(now, s, false)
}

// divertAll diverts every live slot that has something to divert.
func (c *core) divertAll(now time.Duration, why Reason) {
	c.eachSlot(func(p *partition, s *slot) {
		if p.owned && s.run.n > 0 {
			c.divert(now, s, why)
		}
	})
	c.hand()
}

package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// observe tells the core what state the breaker is in.
func (c *core) observe(now time.Duration, state breaker.State) {
	if state == c.state {
		return
	}
	c.state, c.nudge, c.capped, c.shut = state, true, false, false
	switch state {
	case breaker.Open:
		c.ramp.End()
		c.divertAll(now, ReasonOpen)
	case breaker.HalfOpen:
		c.hurry(now)
	case breaker.Closed:
		c.forgive(now)
		c.ramp.Begin(now, c.ordinary())
	}
}

// hurry readies, for the probes, the slots whose first item waits only
// because it failed before: the open window was wait enough. They come after
// all others.
func (c *core) hurry(now time.Duration) {
	for s := c.waiting.first; s != nil; {
		next := s.links[turnLink].next
		if !s.held {
			s.notBefore, s.demoted = 0, true
			c.file(now, s, false)
		}
		s = next
	}
}

// forgive forgets, on a close, whose probes failed.
func (c *core) forgive(now time.Duration) {
	for c.demoted.n > 0 {
		c.file(now, c.demoted.first, false)
	}
}

// poll applies what time alone decides and returns when to call it again.
func (c *core) poll(now time.Duration) (next time.Duration) {
	for {
		w, ok := c.wakes.due(now)
		if !ok {
			break
		}
		switch w.kind {
		case wakeTurn:
			if w.s.links[turnLink].in == &c.waiting {
				c.file(now, w.s, false)
			}
		case wakePark:
			c.repark(w.s)
		}
	}
	c.hand()
	c.nudge, c.capped = false, false // a probe's lease may have ended
	c.shut = c.shut && now < c.reopen
	return min(c.wakes.next(), c.gateAt(), c.ramp.Poll(now, c.parking > 0), c.rate.next(now))
}

// gateAt is when the gate is to be asked again.
func (c *core) gateAt() time.Duration {
	if c.shut {
		return c.reopen
	}
	return breaker.Never
}

// wakeAt returns when poll is due at the latest, as far as the core has
// changed that since.
func (c *core) wakeAt(now func() time.Duration) time.Duration {
	if c.nudge {
		return 0
	}
	at := min(c.wakes.next(), c.gateAt())
	if c.rate.short {
		at = min(at, c.rate.next(now()))
	}
	return at
}

package fallback

import (
	"errors"
	"time"
)

// A park that the queue did not take is repeated after parkDelay, then twice
// that, up to parkDelayMax.
const (
	parkDelay    = 50 * time.Millisecond
	parkDelayMax = 2 * time.Second
)

// queuePark lines a slot up for its next park, if it is due one.
func (c *core) queuePark(s *slot) {
	if s.state == parking && s.unacked == nil && s.run.n > 0 && s.links[parkLink].in == nil {
		c.parks.push(s)
	}
}

// repark lines a slot up to repeat its park.
func (c *core) repark(s *slot) {
	if s.unacked != nil && !s.asked && s.links[parkLink].in == nil {
		c.parks.push(s)
	}
}

// hand hands parks over, as many as may be out.
func (c *core) hand() {
	for c.parks.n > 0 && c.parksOut < c.cfg.MaxParks {
		s := c.parks.pop()
		if s.unacked == nil {
			s.unacked = s.run.pop()
		}
		s.asked = true
		c.parksOut++
		c.out.parks = append(c.out.parks, park{s, s.unacked})
	}
}

// parked takes the queue's answer to a park.
func (c *core) parked(now time.Duration, p park, err error) {
	c.parksOut--
	defer c.hand()
	s := p.s
	if s.unacked != p.e {
		return // its partition was given up meanwhile
	}
	s.asked = false
	switch {
	case err == nil, errors.Is(err, ErrDuplicate):
		c.full = false
		c.acked(now, p, err == nil)
	case errors.Is(err, ErrFull):
		c.full = true
		if c.onFull() == Drop {
			c.dropped(now, p)
			return
		}
		if c.onFull() == Dead {
			c.evict++
		}
		c.later(now, s)
	default:
		p.e.unsure = true
		c.later(now, s)
	}
}

// onFull is what to do when the queue is full. A consumer that wants nothing
// any more must not hold up the others.
func (c *core) onFull() OnFull {
	if c.disabled {
		return Dead
	}
	return c.cfg.OnFull
}

// acked notes that a trigger is durable. A duplicate may have been counted
// before (by the table of its partition), or may have been delivered long
// ago. It is counted all the same, because a count that is too high is
// corrected when the queue says that the slot has no item, while one that is
// too low would let live triggers overtake parked ones.
func (c *core) acked(now time.Duration, p park, fresh bool) {
	s := p.s
	first := s.stored == 0
	s.stored++
	s.acks++
	c.stored++
	if first && s.head == nil {
		s.priority, s.known = p.e.trigger.Priority, true
	}
	if fresh && c.cfg.Hooks.Diverted != nil {
		hook, reason := c.cfg.Hooks.Diverted, p.e.reason
		c.out.told = append(c.out.told, func() { hook(reason) })
	}
	c.unpark(p)
	if first && !s.busy {
		c.file(now, s, false)
	}
}

// dropped gives a trigger up without keeping it, as configured.
func (c *core) dropped(now time.Duration, p park) {
	if c.cfg.Hooks.Dropped != nil {
		c.out.told = append(c.out.told, c.cfg.Hooks.Dropped)
	}
	if p.e.unsure { // this try stored nothing, but an earlier one may have
		c.acked(now, p, false)
		return
	}
	if p.s.stored == 0 { // what is known of the first item was about this one
		p.s.forgetHead()
	}
	c.unpark(p)
	c.file(now, p.s, false)
}

// unpark ends a park: the trigger is settled, the next one's turn comes.
func (c *core) unpark(p park) {
	p.s.unacked, p.s.refused = nil, 0
	c.outside -= p.e.size
	c.outCount--
	c.settle(p.e)
	c.queuePark(p.s)
}

// later repeats a park after a while.
func (c *core) later(now time.Duration, s *slot) {
	delay := min(parkDelay<<min(s.refused, 10), parkDelayMax)
	s.refused++
	c.wakes.set(s, wakePark, now+delay)
}

// settle tells a trigger's owner that it is settled.
func (c *core) settle(e *entry) {
	if e.settled != nil {
		c.out.settled = append(c.out.settled, e.settled)
	}
}

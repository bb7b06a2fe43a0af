package fallback

import (
	"slices"
	"time"

	"github.com/tripline/tripline/breaker"
)

// owned makes a partition's slots usable: what its table counts is parked,
// the triggers of the other slots may be called.
func (c *core) owned(now time.Duration, number int, table map[Slot]int) {
	p := c.partition(number)
	was := p.owned
	p.owned, p.closing = true, false
	delete(c.gone, number)
	for id, n := range table {
		if s := c.slot(id); n > s.stored {
			c.addStored(s, n-s.stored)
		}
	}
	for _, s := range p.slots {
		if s == nil {
			continue
		}
		s.head = nil // it may be gone
		switch {
		case s.state != live || was && s.stored == 0:
		case was:
			c.divert(now, s, "")
		case s.stored > 0:
			c.setParking(s, ReasonOrder)
		case c.lane+s.run.n > c.cfg.Lane:
			c.setParking(s, ReasonLaneFull)
		default:
			c.enterLane(s)
		}
		c.queuePark(s)
		c.file(now, s, false)
	}
	if c.stored > 0 && !c.served && c.state == breaker.Closed && !c.ramp.Active() {
		// Just started, with a backlog: there was an outage, and nobody knows
		// whether it is over.
		c.ramp.Begin(now, c.ordinary())
		c.nudge = true
	}
	c.hand()
}

// setParking makes a slot, whose triggers don't count in the lane, park.
func (c *core) setParking(s *slot, why Reason) {
	s.state = parking
	c.parking++
	for e := s.run.first; e != nil; e = e.next {
		e.reason = why
	}
}

// enterLane counts a slot's triggers, which waited for the table, in the lane.
func (c *core) enterLane(s *slot) {
	c.lane += s.run.n
	for e := s.run.first; e != nil; e = e.next {
		c.outside -= e.size
		c.outCount--
		e.reason = ""
	}
}

// evacuate makes everything of a partition that is in memory go to the queue.
func (c *core) evacuate(now time.Duration, p *partition) {
	for _, s := range p.slots {
		switch {
		case s == nil || s.state != live || s.run.n == 0 && !s.busy:
		case p.owned:
			c.divert(now, s, ReasonShutdown)
		default:
			c.setParking(s, ReasonShutdown)
			c.queuePark(s)
		}
	}
	c.hand()
}

// quiet says that nothing of a partition is in memory or at a worker.
func (p *partition) quiet() bool {
	for _, s := range p.slots {
		if s != nil && (s.busy || s.run.n > 0 || s.unacked != nil) {
			return false
		}
	}
	return true
}

// drop forgets a partition. What is left of it in memory stays unsettled.
func (c *core) drop(number int) {
	p := c.partition(number)
	c.partitions[number] = nil
	c.gone[number] = true
	c.leftover = slices.DeleteFunc(c.leftover, func(l leftover) bool { return l.s.id.Partition == number })
	for _, s := range p.slots {
		if s == nil {
			continue
		}
		c.unfile(s)
		if l := s.links[parkLink].in; l != nil {
			l.remove(s)
		}
		c.uncount(p, s)
		if s.busy {
			s.abandon()
			continue
		}
		s.reset()
		c.spare = append(c.spare, s)
	}
}

// uncount takes a slot out of the sums.
func (c *core) uncount(p *partition, s *slot) {
	c.stored -= s.stored
	if s.state == parking {
		c.parking--
	}
	if s.state == live && p.owned {
		c.lane -= s.run.n
	} else {
		for e := s.run.first; e != nil; e = e.next {
			c.outside -= e.size
			c.outCount--
		}
	}
	if s.unacked != nil {
		c.outside -= s.unacked.size
		c.outCount--
	}
}

// stop ends offers and replay; the lanes are emptied.
func (c *core) stop() { c.stopping = true }

// evacuateAll makes everything in memory go to the queue.
func (c *core) evacuateAll(now time.Duration) {
	for _, p := range c.partitions {
		if p != nil {
			p.closing = true
			c.evacuate(now, p)
		}
	}
}

// empty says that no live trigger waits for its call and none is under way.
func (c *core) empty() bool { return c.lane == 0 && c.busy == 0 }

// quiet says that nothing is in memory or at a worker.
func (c *core) quiet() bool { return c.lane == 0 && c.outCount == 0 && c.busy == 0 }

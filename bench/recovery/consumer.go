package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// illness says how a consumer fails while it is sick.
type illness struct {
	share   float64 // of the calls that are affected
	latency time.Duration
}

// consumerConfig describes a consumer. See docs/RECOVERY.md for the model.
type consumerConfig struct {
	healthy time.Duration // latency of a call that needs no backend
	spread  float64       // sigma of a log-normal factor on healthy; 0: none
	ill     illness       // until it heals
	lasting illness       // for ever after

	backends   int           // slots behind a cold cache
	missCost   time.Duration // of a slot
	warming    float64       // a request misses with probability exp(-served/warming)
	servers    int           // calls served at once, 0: any number
	fallsOver  bool          // too long a queue for the slots fells it
	fallsQueue int           // more than so many waiting ...
	fallsAfter time.Duration // ... for so long without a break ...
	fallsFor   time.Duration // ... makes it sick for so long
}

// consumer is the model of the thing that recovers.
type consumer struct {
	consumerConfig
	s        *sim
	rng      *rand.Rand
	heals    time.Duration
	fallen   time.Duration // until when
	served   int           // since it healed
	used     int           // backend slots
	queue    []int32       // calls that wait for a slot
	crowded  time.Duration // since when more than fallsQueue wait; -1: they don't
	crowdID  int32         // of the crowding, to recognise its timer
	busy     int           // servers
	line     []int32       // calls that wait for a server
	fellOver []time.Duration
}

// sickLatency is what every call takes while the consumer has fallen over.
const sickLatency = 900 * time.Millisecond

func (c *consumer) sick(now time.Duration) bool { return now < c.heals || now < c.fallen }

// accept takes a call that begins now.
func (c *consumer) accept(now time.Duration, id int32) {
	if now < c.heals {
		if c.ill.share >= 1 || c.rng.Float64() < c.ill.share {
			c.s.answers(now+c.ill.latency, id)
			return
		}
	} else if now < c.fallen {
		c.s.answers(now+sickLatency, id)
		return
	}
	c.s.calls[id].warms = now >= c.heals
	if c.servers > 0 {
		if c.busy == c.servers {
			c.line = append(c.line, id)
			return
		}
		c.busy++
	}
	c.serve(now, id)
}

// serve starts the work on a call.
func (c *consumer) serve(now time.Duration, id int32) {
	c.s.calls[id].served = true
	if now >= c.heals {
		if c.lasting.share > 0 && c.rng.Float64() < c.lasting.share {
			c.s.answers(now+c.lasting.latency, id)
			return
		}
		if c.backends > 0 && c.misses() {
			if c.used < c.backends {
				c.fetch(now, id)
			} else {
				c.queue = append(c.queue, id)
				c.watch(now)
			}
			return
		}
	}
	c.s.answers(now+c.base(), id)
}

// misses says whether the cache has not yet what the next call needs.
func (c *consumer) misses() bool {
	x := float64(c.served) / c.warming
	if x >= sureWarm {
		return false
	}
	u := c.rng.Float64()
	if u*(1+x*(1+x*(1+x/3)/2)) > 1 { // the first terms of exp(x): cheaper, and nearly always enough
		return false
	}
	return u < math.Exp(-x)
}

// base is what a call takes that needs no backend.
func (c *consumer) base() time.Duration {
	if c.spread == 0 {
		return c.healthy
	}
	return time.Duration(float64(c.healthy) * math.Exp(c.spread*c.rng.NormFloat64()))
}

// longest is what a warm call takes at most while that many are in flight.
func (c *consumer) longest(inFlight int) time.Duration {
	if c.servers == 0 {
		return c.healthy
	}
	return time.Duration((inFlight+c.servers-1)/c.servers) * c.healthy
}

// fetch gives a call a backend slot.
func (c *consumer) fetch(now time.Duration, id int32) {
	c.used++
	c.s.push(now+c.missCost, fetched, id)
}

// fetched frees a slot; the call that had it is answered.
func (c *consumer) fetched(now time.Duration, id int32) {
	c.used--
	if len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.fetch(now, next)
		c.watch(now)
	}
	c.s.answered(id)
}

// answered is told of each call that the consumer has answered, whether or
// not anybody still waits for it.
func (c *consumer) answered(now time.Duration, id int32) {
	if c.s.calls[id].warms {
		c.served++
	}
	if c.servers == 0 || !c.s.calls[id].served {
		return
	}
	if len(c.line) > 0 {
		next := c.line[0]
		c.line = c.line[1:]
		c.serve(now, next)
	} else if c.busy > 0 {
		c.busy--
	}
}

// watch looks whether the queue is too long, and since when.
func (c *consumer) watch(now time.Duration) {
	switch {
	case len(c.queue) <= c.fallsQueue:
		c.crowded = -1
		c.crowdID++
	case c.crowded < 0 && c.fallsOver && now >= c.fallen:
		c.crowded = now
		c.s.push(now+c.fallsAfter, crowd, c.crowdID)
	}
}

// crowdLasts is the end of fallsAfter since a crowding began.
func (c *consumer) crowdLasts(now time.Duration, id int32) {
	if id != c.crowdID || c.crowded < 0 {
		return
	}
	c.fallen = now + c.fallsFor
	c.fellOver = append(c.fellOver, now)
	c.crowded = -1
	c.crowdID++
}

package main

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// slotCount is how many slots a consumer has: 16 partitions of 256.
const slotCount = 4096

// laneLimit is how many live triggers wait in memory at most.
const laneLimit = 1024

// slot is the unit of order: at most one of its triggers is in flight, and
// while any of them is parked all that follow are parked behind it.
type slot struct {
	head, tail int32  // of what is parked, -1 if nothing is
	waiting    int32  // live triggers in the lane
	attempts   int8   // failed calls of its oldest parked trigger, while closed
	busy       bool   // a call of it is in flight
	delayed    bool   // its oldest trigger waits for its retry
	inBacklog  bool   // it is in the line of the backlog
	inLane     bool   // it is in the line of the lane
	failed     uint64 // when a probe with it last failed, counted by failures
}

// outlet keeps what waits for the consumer, in the order that the fallback
// package keeps it.
type outlet struct {
	slots   [slotCount]slot
	next    []int32 // of each parked trigger, the one behind it
	order   []int64 // of each parked trigger, its position in the queue
	free    []int32 // entries of the two above that hold nothing
	parked  int
	lane    int // live triggers that wait
	backlog ring
	live    ring
	newest  int64 // position
	ready   int   // slots with something parked that could be called
}

func (o *outlet) init() {
	for i := range o.slots {
		o.slots[i] = slot{head: -1, tail: -1}
	}
}

// park puts a trigger at the end of its slot.
func (o *outlet) park(i int32) {
	s := &o.slots[i]
	e := o.entry()
	if s.tail < 0 {
		s.head = e
	} else {
		o.next[s.tail] = e
	}
	s.tail = e
	o.offer(i)
}

// parkFirst puts a trigger that failed at the head of its slot.
func (o *outlet) parkFirst(i int32) {
	s := &o.slots[i]
	e := o.entry()
	o.next[e] = s.head
	if s.head < 0 {
		s.tail = e
	}
	s.head = e
}

func (o *outlet) entry() int32 {
	o.parked++
	o.newest++
	if n := len(o.free); n > 0 {
		e := o.free[n-1]
		o.free = o.free[:n-1]
		o.next[e], o.order[e] = -1, o.newest
		return e
	}
	o.next = append(o.next, -1)
	o.order = append(o.order, o.newest)
	return int32(len(o.next) - 1)
}

// unpark removes the oldest trigger of a slot: it was delivered.
func (o *outlet) unpark(i int32) {
	s := &o.slots[i]
	e := s.head
	s.head = o.next[e]
	if s.head < 0 {
		s.tail = -1
	}
	s.attempts, s.failed = 0, 0
	o.free = append(o.free, e)
	o.parked--
}

// offer puts a slot in line, if it has something parked that may be called.
func (o *outlet) offer(i int32) {
	s := &o.slots[i]
	if s.head >= 0 && !s.busy && !s.delayed && !s.inBacklog {
		s.inBacklog = true
		o.backlog.push(i)
	}
}

// offerLive does the same for the lane.
func (o *outlet) offerLive(i int32) {
	s := &o.slots[i]
	if s.waiting > 0 && !s.busy && !s.inLane {
		s.inLane = true
		o.live.push(i)
	}
}

// backlogWaits drops what is no longer ready from the head of the line, and
// says whether anything is left.
func (o *outlet) backlogWaits() bool {
	for o.backlog.n > 0 {
		i := o.backlog.items[o.backlog.head]
		if s := &o.slots[i]; s.head >= 0 && !s.busy && !s.delayed {
			return true
		}
		o.backlog.pop()
		o.slots[i].inBacklog = false
	}
	return false
}

func (o *outlet) liveWaits() bool {
	for o.live.n > 0 {
		i := o.live.items[o.live.head]
		if s := &o.slots[i]; s.waiting > 0 && !s.busy {
			return true
		}
		o.live.pop()
		o.slots[i].inLane = false
	}
	return false
}

// parkLane parks all that waits in memory: the breaker has tripped.
func (o *outlet) parkLane() {
	for o.live.n > 0 {
		i := o.live.pop()
		o.slots[i].inLane = false
		o.parkSlot(i)
	}
	for i := range o.slots { // what waits behind a call in flight
		o.parkSlot(int32(i))
	}
}

// parkSlot parks what waits in memory of one slot.
func (o *outlet) parkSlot(i int32) {
	s := &o.slots[i]
	for ; s.waiting > 0; s.waiting-- {
		o.lane--
		o.park(i)
	}
}

// choose picks the slot whose oldest trigger is the next probe.
func (o *outlet) choose() (int32, bool) {
	best, found := int32(-1), breaker.Candidate{}
	for i := range o.slots {
		s := &o.slots[i]
		if s.head < 0 || s.busy {
			continue
		}
		c := breaker.Candidate{Failed: s.failed, Oldest: uint64(o.order[s.head])}
		if best < 0 || breaker.CompareCandidates(c, found) < 0 {
			best, found = int32(i), c
		}
	}
	return best, best >= 0
}

// retryDelay is what a trigger waits after its n-th failed call.
func retryDelay(n int8) time.Duration {
	return min(time.Second<<(min(n, 7)-1), time.Minute)
}

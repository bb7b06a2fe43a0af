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
	parked    int32
	waiting   int32 // live triggers in the lane
	oldest    int64 // position of its oldest parked trigger, as good as
	attempts  int8  // failed calls of that, while closed
	busy      bool  // a call of it is in flight
	delayed   bool  // its oldest trigger waits for its retry
	inBacklog bool  // it is in the line of the backlog
	inLane    bool  // it is in the line of the lane
	failed    int32 // when a probe with it last failed, counted by failures
}

// outlet keeps what waits for the consumer, in the order that the fallback
// package keeps it.
type outlet struct {
	slots    [slotCount]slot
	parked   int
	lane     int // live triggers that wait
	backlog  ring
	live     ring
	position int64 // of the newest parked trigger
}

// park puts a trigger at the end of its slot; or at its head, if it failed.
func (o *outlet) park(i int32) {
	s := &o.slots[i]
	o.parked++
	o.position++
	if s.parked == 0 {
		s.oldest = o.position
	}
	s.parked++
	o.offer(i)
}

// unpark removes the oldest trigger of a slot: it was delivered.
func (o *outlet) unpark(i int32) {
	s := &o.slots[i]
	s.parked--
	s.oldest = o.position // the one behind it is some rounds younger
	s.attempts, s.failed = 0, 0
	o.parked--
}

// offer puts a slot in line, if it has something parked that may be called.
func (o *outlet) offer(i int32) {
	s := &o.slots[i]
	if s.parked > 0 && !s.busy && !s.delayed && !s.inBacklog {
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
		if s := &o.slots[i]; s.parked > 0 && !s.busy && !s.delayed {
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
		if s.parked == 0 || s.busy {
			continue
		}
		c := breaker.Candidate{Failed: uint64(s.failed), Oldest: uint64(s.oldest)}
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

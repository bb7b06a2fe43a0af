package main

import "time"

// kind says what an event of the simulation is.
type kind uint8

const (
	answer   kind = iota // the consumer answers a call
	deadline             // the client gives up on a call
	fetched              // a backend slot has done its work
	crowd                // the queue for the slots has been too long for long
	poll                 // the policy wants to be asked
	tick                 // the ramp wants to be asked
	retry                // a slot's oldest trigger may be tried again
	check                // a health check is sent
	checked              // and answered
)

// event is something that will happen.
type event struct {
	at     time.Duration
	serial uint32 // of the call, where id is one
	id     int32
	kind   kind
}

// events is a binary heap, soonest first. container/heap costs an allocation
// for each event.
type events []event

func (h *events) push(e event) {
	q := append(*h, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].at <= e.at {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
	*h = q
}

func (h *events) pop() event {
	q := *h
	first, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	if len(q) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(q) {
			break
		}
		if down+1 < len(q) && q[down+1].at < q[down].at {
			down++
		}
		if last.at <= q[down].at {
			break
		}
		q[i] = q[down]
		i = down
	}
	q[i] = last
	return first
}

// ring is a first-in-first-out queue.
type ring struct {
	items []int32
	head  int
	n     int
}

func (r *ring) push(v int32) {
	if r.n == len(r.items) {
		grown := make([]int32, max(64, 2*len(r.items)))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)%len(r.items)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)%len(r.items)] = v
	r.n++
}

func (r *ring) pop() int32 {
	v := r.items[r.head]
	r.head = (r.head + 1) % len(r.items)
	r.n--
	return v
}

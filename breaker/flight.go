package breaker

import "time"

// flying is a call of a ramp in flight.
type flying struct {
	serial     uint64 // 0 when the entry is free
	begin      time.Duration
	prev, next int32 // neighbours among the young; next also links free entries
	over       bool  // past the guard, and no longer among the young
}

// flight holds the calls of a ramp in flight. Those that have not passed the
// guard are linked in order of their beginning, so that the oldest alone says
// what is next to pass. Entries are reused: a call costs no allocation.
type flight struct {
	slab       []flying
	free       int32 // first free entry, end if none
	head, tail int32 // of the young
	length     int
	serial     uint64 // of the newest call
}

const end = int32(-1)

func newFlight(size int) flight {
	return flight{slab: make([]flying, 0, size), free: end, head: end, tail: end}
}

// add takes up a call that begins now and returns its place. now never falls.
func (f *flight) add(now time.Duration) int32 {
	i := f.free
	if i == end {
		i = int32(len(f.slab))
		f.slab = append(f.slab, flying{})
	} else {
		f.free = f.slab[i].next
	}
	f.serial++
	f.length++
	f.slab[i] = flying{serial: f.serial, begin: now, prev: f.tail, next: end}
	if f.tail == end {
		f.head = i
	} else {
		f.slab[f.tail].next = i
	}
	f.tail = i
	return i
}

// get returns a call, nil if it has ended.
func (f *flight) get(c RampCall) *flying {
	if c.serial == 0 || int(c.place) >= len(f.slab) || f.slab[c.place].serial != c.serial {
		return nil
	}
	return &f.slab[c.place]
}

// oldest returns the oldest young call, nil if there is none.
func (f *flight) oldest() *flying {
	if f.head == end {
		return nil
	}
	return &f.slab[f.head]
}

// pass takes a call out of the young ones.
func (f *flight) pass(i int32) {
	c := &f.slab[i]
	c.over = true
	if c.prev == end {
		f.head = c.next
	} else {
		f.slab[c.prev].next = c.next
	}
	if c.next == end {
		f.tail = c.prev
	} else {
		f.slab[c.next].prev = c.prev
	}
}

// remove ends a call.
func (f *flight) remove(i int32) {
	c := &f.slab[i]
	if !c.over {
		f.pass(i)
	}
	c.serial = 0
	c.next = f.free
	f.free = i
	f.length--
}

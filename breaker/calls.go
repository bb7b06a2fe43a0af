package breaker

import "time"

// call is a permit that has not come back.
type call struct {
	serial     uint64 // of its permit; 0 when the entry is free
	generation uint64
	begin      time.Duration
	prev, next int32 // neighbours in its list; next also links free entries
	probe      bool
	overdue    bool // past the threshold; in the late list
}

// calls holds the calls in flight, in order of their beginning, in two lists:
// the young ones, and the late ones that have passed a threshold. Because
// both are in order, the heads alone say what time will do next. Entries are
// reused, so that a call costs no allocation once the slab has grown to the
// most calls that were ever in flight.
type calls struct {
	slab   []call
	free   int32 // first free entry, end if none
	young  list
	late   list
	length int
	serial uint64 // of the newest permit
}

const end = int32(-1)

type list struct{ head, tail int32 }

func newCalls(size int) calls {
	return calls{
		slab:  make([]call, 0, size),
		free:  end,
		young: list{end, end},
		late:  list{end, end},
	}
}

// add takes up a call that begins now and returns its place. now never falls.
func (cs *calls) add(now time.Duration, generation uint64, probe bool) int32 {
	i := cs.free
	if i == end {
		i = int32(len(cs.slab))
		cs.slab = append(cs.slab, call{})
	} else {
		cs.free = cs.slab[i].next
	}
	cs.serial++
	cs.length++
	cs.slab[i] = call{serial: cs.serial, generation: generation, begin: now, probe: probe, prev: end, next: end}
	cs.link(&cs.young, i)
	return i
}

// get returns the call of a permit, nil if that has come back.
func (cs *calls) get(i int32, serial uint64) *call {
	if c := &cs.slab[i]; c.serial == serial {
		return c
	}
	return nil
}

// head returns the oldest call of a list, nil if it is empty.
func (cs *calls) head(l *list) *call {
	if l.head == end {
		return nil
	}
	return &cs.slab[l.head]
}

// pass moves a young call to the end of the late list.
func (cs *calls) pass(i int32) {
	cs.unlink(&cs.young, i)
	cs.slab[i].overdue = true
	cs.link(&cs.late, i)
}

// remove frees the entry of a call.
func (cs *calls) remove(i int32) {
	c := &cs.slab[i]
	if c.overdue {
		cs.unlink(&cs.late, i)
	} else {
		cs.unlink(&cs.young, i)
	}
	c.serial = 0
	c.next = cs.free
	cs.free = i
	cs.length--
}

func (cs *calls) link(l *list, i int32) {
	c := &cs.slab[i]
	c.prev, c.next = l.tail, end
	if l.tail == end {
		l.head = i
	} else {
		cs.slab[l.tail].next = i
	}
	l.tail = i
}

func (cs *calls) unlink(l *list, i int32) {
	c := &cs.slab[i]
	if c.prev == end {
		l.head = c.next
	} else {
		cs.slab[c.prev].next = c.next
	}
	if c.next == end {
		l.tail = c.prev
	} else {
		cs.slab[c.next].prev = c.prev
	}
}

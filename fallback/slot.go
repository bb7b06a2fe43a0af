package fallback

import (
	"time"

	"github.com/tripline/tripline/router"
)

// slotState says where the next trigger of a slot goes.
type slotState uint8

const (
	// live: triggers wait in memory for their call.
	live slotState = iota
	// leaving: still live, with a call in flight; all that waits, and all
	// that comes, is parked at the outcome of that call.
	leaving
	// parking: every trigger goes to the queue.
	parking
)

// slot is one unit of order. The core's owner holds the lock over it.
type slot struct {
	id    Slot
	state slotState
	// busy is set while the slot is at a worker: its head is fetched or
	// called, buried or deleted, or a live trigger of it is in flight.
	busy bool
	// run holds the triggers in memory, oldest first: those that wait for
	// their call, or, once the slot is parking, for their park.
	run run
	// unacked is the one trigger whose park has no answer yet; asked says
	// that the question is out, as against waiting to be repeated.
	unacked *entry
	asked   bool
	refused int // times in a row that the queue did not take it

	// stored is how many durable items the slot is believed to have. It may
	// be too high, never too low: the queue's word that there is none, for
	// acks counted by then, corrects it.
	stored int
	acks   uint64 // durable items added, ever
	after  uint64 // Seq of the last settled item
	left   int    // settled items that could not be deleted yet

	// head is the first item, while it is loaded.
	head    *Item
	expires time.Duration // when head is too old to be delivered

	// What is known of the first item, whether it is loaded or not.
	attempts  int // calls that count against MaxAttempts
	tried     int // calls
	lastError string
	doom      DeadReason // "" or why it is to become a dead letter
	died      time.Time  // when that was first tried
	priority  router.Priority
	known     bool // priority is the first item's, as far as we know
	demoted   bool // a probe of it failed: others come first
	// It has its turn at notBefore; held says that the consumer asked for it
	// or that a dead letter had no room: then a probe does not hurry it.
	notBefore time.Duration
	held      bool

	// orphan is set when the partition was given up while the slot was at a
	// worker, who still holds it.
	orphan bool

	links  [2]link // in the line of its turn, and in the line for a park
	ticket [2]uint64
}

// backlog is how many triggers of the slot are parked, or on their way there.
func (s *slot) backlog() int {
	n := s.stored
	if s.unacked != nil {
		n++
	}
	if s.state == parking {
		n += s.run.n
	}
	return n
}

// reset empties a slot for its next use. Its wakes no longer count.
func (s *slot) reset() {
	*s = slot{ticket: [2]uint64{s.ticket[0] + 1, s.ticket[1] + 1}}
}

// abandon empties a slot that a worker still holds. What the worker reads
// without the lock stays as it is.
func (s *slot) abandon() {
	s.orphan = true
	s.state, s.run, s.unacked, s.asked, s.stored, s.left = live, run{}, nil, false, 0, 0
	s.ticket[wakeTurn]++
	s.ticket[wakePark]++
}

// idle says that the slot needs not be remembered.
func (s *slot) idle() bool {
	return s.state == live && !s.busy && s.run.n == 0 && s.left == 0
}

// forgetHead drops all that is known of the first item.
func (s *slot) forgetHead() {
	s.head, s.attempts, s.tried, s.lastError, s.doom, s.died = nil, 0, 0, "", "", time.Time{}
	s.known, s.demoted, s.notBefore, s.held = false, false, 0, false
}

// entry is a trigger in memory.
type entry struct {
	trigger router.Trigger
	settled func()
	reason  Reason // why it is parked
	unsure  bool   // an answer to its park was lost: it may be stored
	size    int
	next    *entry
}

// run is a first in, first out row of entries.
type run struct {
	first, last *entry
	n           int
}

func (r *run) push(e *entry) {
	e.next = nil
	if r.last == nil {
		r.first = e
	} else {
		r.last.next = e
	}
	r.last = e
	r.n++
}

// unshift puts e before all others: it is older.
func (r *run) unshift(e *entry) {
	e.next = r.first
	r.first = e
	if r.last == nil {
		r.last = e
	}
	r.n++
}

func (r *run) pop() *entry {
	e := r.first
	r.first = e.next
	if r.first == nil {
		r.last = nil
	}
	e.next = nil
	r.n--
	return e
}

// link is a slot's place in a line.
type link struct {
	prev, next *slot
	in         *line
}

// The links of a slot: it stands in at most one line of each kind.
const (
	turnLink = iota // waits for its turn at a worker
	parkLink        // waits for a park to be handed over
)

// line is a row of slots that wait for the same thing.
type line struct {
	first, last *slot
	n           int
	kind        int // which link it uses
}

func (l *line) push(s *slot) {
	k := &s.links[l.kind]
	*k = link{prev: l.last, in: l}
	if l.last == nil {
		l.first = s
	} else {
		l.last.links[l.kind].next = s
	}
	l.last = s
	l.n++
}

func (l *line) unshift(s *slot) {
	k := &s.links[l.kind]
	*k = link{next: l.first, in: l}
	if l.first == nil {
		l.last = s
	} else {
		l.first.links[l.kind].prev = s
	}
	l.first = s
	l.n++
}

func (l *line) pop() *slot {
	s := l.first
	l.remove(s)
	return s
}

func (l *line) remove(s *slot) {
	k := &s.links[l.kind]
	if k.prev == nil {
		l.first = k.next
	} else {
		k.prev.links[l.kind].next = k.next
	}
	if k.next == nil {
		l.last = k.prev
	} else {
		k.next.links[l.kind].prev = k.prev
	}
	*k = link{}
	l.n--
}

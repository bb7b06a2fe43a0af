package router

import (
	"sync"
	"time"
)

// claim holds the progress of a partition back until the triggers of one
// device at one position are settled. A transition that nobody wants makes
// one too, settled at once: the presence after every transition is saved
// before the offset passes it, so a restart never judges it again.
type claim struct {
	dev *device
	// hold is the offset that the claim allows at most.
	hold uint64
	// presence is the device's encoded presence after the position, and
	// contained the position up to which it contains all.
	presence  []byte
	contained uint64
	begun     time.Time

	// Guarded by ledger.mu.

	left int // triggers that are not settled
	next *claim
}

// save is a presence that waits for a commit.
type save struct {
	dev       *device
	presence  []byte // nil removes it
	contained uint64
	claims    int // settled claims that it contains
}

// saved tells the loop of a presence that became durable.
type saved struct {
	dev       *device
	contained uint64
	claims    int
}

// step is a commit in the making.
type step struct {
	offset, floor uint64
	position      uint64 // of the newest message judged
	clock         int64
	saves         map[string]save // by device name
	ticket        uint64
}

// ledger is what the loop, the outlets and the committer of a partition
// share: which triggers are settled, and what is to be saved. Nothing in it
// waits, and no lock is held over a call.
type ledger struct {
	// wake has room for one: there is something to save.
	wake chan struct{}

	mu sync.Mutex // guards all below, and what claim and device say

	begun  bool // a start has loaded what was saved
	claims ring[*claim]
	loop   loopState
	saves  map[string]save // by device name
	done   []saved
	// Progress that is durable.
	offsetDone, floorDone uint64
	clockDone             int64
	// ticket counts the removals asked for, ticketDone the durable ones;
	// durable is closed and replaced when that rises.
	ticket, ticketDone uint64
	durable            chan struct{}
}

func newLedger() *ledger {
	return &ledger{
		wake:    make(chan struct{}, 1),
		saves:   make(map[string]save),
		durable: make(chan struct{}),
	}
}

// begin sets what a start has loaded.
func (l *ledger) begin(s Saved) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	l.loop = loopState{next: s.Offset, floor: s.ReplayFrom, clock: s.Clock}
	l.offsetDone, l.floorDone, l.clockDone = s.Offset, s.ReplayFrom, s.Clock
}

// add registers the claims of one position, before any of their triggers is
// offered. hold is the position; it is raised to the offset so far, which
// never falls.
func (l *ledger) add(claims []*claim, hold uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold = max(hold, l.offset())
	for _, c := range claims {
		c.hold = hold
		l.claims.push(c)
		if c.dev.tail == nil {
			c.dev.head = c
		} else {
			c.dev.tail.next = c
		}
		c.dev.tail = c
	}
	for _, c := range claims {
		if c.left == 0 {
			l.settled(c)
		}
	}
}

// settle marks one trigger of the claim settled.
func (l *ledger) settle(c *claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.left--
	if c.left == 0 {
		l.settled(c)
	}
}

// settled moves the progress past a claim without triggers left, as far as
// earlier ones allow.
func (l *ledger) settled(c *claim) {
	d := c.dev
	for d.head != nil && d.head.left <= 0 {
		if !d.forgotten {
			l.merge(save{d, d.head.presence, d.head.contained, 1})
		}
		if d.head = d.head.next; d.head == nil {
			d.tail = nil
		}
	}
	for l.claims.len() > 0 && l.claims.front().left <= 0 {
		l.claims.pop()
	}
	l.poke()
}

// put asks for a presence to be saved that has no claims.
func (l *ledger) put(d *device, presence []byte, contained uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.merge(save{d, presence, contained, 0})
	l.poke()
}

// merge puts a newer presence in the place of what waits for the commit. The
// caller holds mu.
func (l *ledger) merge(s save) {
	if older := l.saves[s.dev.name]; older.dev == s.dev {
		s.claims += older.claims
	}
	l.saves[s.dev.name] = s
}

// forget asks for the removal of a presence: what its claims would save is
// dropped. The ticket is for awaitTicket.
func (l *ledger) forget(d *device) (ticket uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.forgotten = true
	l.saves[d.name] = save{dev: d}
	l.ticket++
	l.poke()
	return l.ticket
}

// loopState is how far the loop has come.
type loopState struct {
	next             uint64 // all below has been judged
	floor            uint64 // all changes below are contained in saved presences
	clock            int64
	tracked, unsaved int // devices
}

// publish notes how far the loop has come.
func (l *ledger) publish(s loopState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.next = max(l.loop.next, s.next)
	s.clock = max(l.loop.clock, s.clock)
	l.loop = s
}

func (l *ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// offset is the position below which all is settled. The caller holds mu.
func (l *ledger) offset() uint64 {
	if l.claims.len() > 0 {
		return l.claims.front().hold
	}
	return l.loop.next
}

// stepMost bounds the presences of a step, so that a commit of very many ends
// within its timeout.
const stepMost = 4000

// take returns what a commit must store now; false if there is nothing. Bare
// progress without presences counts only if all is set. Where there are more
// presences than fit a step, they go first, and the progress with the last.
func (l *ledger) take(all bool) (step, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset := l.offset()
	floor := min(l.loop.floor, offset)
	position := max(l.loop.next, 1) - 1
	moved := offset != l.offsetDone || floor != l.floorDone
	if len(l.saves) == 0 && !(all && moved) {
		return step{}, false
	}
	if len(l.saves) > stepMost {
		l.poke()
		st := step{offset: l.offsetDone, floor: l.floorDone, position: position, clock: l.clockDone, saves: make(map[string]save, stepMost), ticket: l.ticketDone}
		for name, s := range l.saves {
			st.saves[name] = s
			delete(l.saves, name)
			if len(st.saves) == stepMost {
				return st, true
			}
		}
	}
	st := step{offset: offset, floor: floor, position: position, clock: l.loop.clock, saves: l.saves, ticket: l.ticket}
	l.saves = make(map[string]save)
	return st, true
}

// committed notes that a step is durable.
func (l *ledger) committed(st step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offsetDone, l.floorDone, l.clockDone = st.offset, st.floor, st.clock
	for _, s := range st.saves {
		l.done = append(l.done, saved{s.dev, s.contained, s.claims})
	}
	if st.ticket > l.ticketDone {
		l.ticketDone = st.ticket
		close(l.durable)
		l.durable = make(chan struct{})
	}
}

// restore puts back what a step whose fate is unknown would have saved; what
// was asked for since is newer.
func (l *ledger) restore(st step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, older := range st.saves {
		newer, ok := l.saves[name]
		switch {
		case !ok:
			l.saves[name] = older
		case newer.dev == older.dev:
			newer.claims += older.claims
			l.saves[name] = newer
		}
	}
}

// removals says whether a removal is durable, and what is closed when that
// may have changed.
func (l *ledger) removals(ticket uint64) (<-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable, l.ticketDone >= ticket
}

// status says where the partition stands.
func (l *ledger) status(now time.Time) Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		Started:    l.begun,
		Position:   max(l.loop.next, 1) - 1,
		Offset:     l.offset(),
		Committed:  l.offsetDone,
		ReplayFrom: l.floorDone,
		Clock:      l.loop.clock,
		Unsettled:  l.claims.len(),
		Devices:    l.loop.tracked,
		Unsaved:    l.loop.unsaved,
	}
	if l.claims.len() > 0 {
		s.Lag = now.Sub(l.claims.front().begun)
	}
	return s
}

// takeSaved returns what became durable since the last call, in dst.
func (l *ledger) takeSaved(dst []saved) []saved {
	l.mu.Lock()
	defer l.mu.Unlock()
	dst = append(dst[:0], l.done...)
	clear(l.done)
	l.done = l.done[:0]
	return dst
}

// ring is a queue in a growing circular buffer.
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) front() T { return r.buf[r.head] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		grown := make([]T, max(16, 2*r.n))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)%len(r.buf)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = v
	r.n++
}

func (r *ring[T]) pop() {
	var zero T
	r.buf[r.head] = zero
	r.head = (r.head + 1) % len(r.buf)
	r.n--
}

package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// core decides what becomes of each trigger of a consumer: which waits, which
// is called next, which is parked, replayed or given up on. It is pure and
// synchronous: no goroutine, no I/O, no clock. Its owner passes the time, does
// what it says, and tells it how that went.
//
// What it says comes in two ways: [core.next] gives a worker its next task,
// and each completion of a task may give a follow-up; and out collects the
// parks to hand over and the triggers that are settled, to be carried out
// without the owner's lock.
//
// The rules of order, which the model test holds it to:
//
//   - A slot is live or parking, never both. While it is parking nothing of
//     it is called but its first stored item.
//   - At most one call or other task of a slot is under way.
//   - At most one park of a slot is unanswered. It is repeated in place.
//   - It goes from parking to live when nothing of it is stored, on its way,
//     or waiting to be parked.
type core struct {
	cfg   *Config
	state breaker.State // as last observed

	partitions []*partition // by number, nil where there is none
	// gone are the partitions that were given up. What is still offered to
	// them is forgotten, like what they had in memory: parked behind that, it
	// would overtake it.
	gone     map[int]bool
	spare    []*slot // slots that can be used again
	wakes    wakes
	ramp     *breaker.Ramp
	ordinary func() time.Duration // what a call ordinarily takes
	rate     bucket
	leftover []leftover // settled items that could not be deleted

	// Lines of slots that wait for a turn at a worker. A slot that is not
	// busy and has something to do stands in exactly one of them.
	calls   line    // live, with a trigger to call
	unread  line    // parking, the priority of its first item not known
	ready   [3]line // parking, to be loaded, by rank
	loaded  [3]line // parking, first item in memory, by rank
	demoted line    // parking, its last probe failed
	waiting line    // parking, not before its time
	// The line for a park, with a bound on those that are out.
	parks    line
	parksOut int

	fetching [4]int // loads under way, by rank; the last: rank not known
	busy     int    // slots at a worker
	inFlight int    // calls

	lane     int // triggers that wait in live slots
	outside  int // bytes of the triggers that wait elsewhere: see Config.MaxWaiting
	outCount int // how many these are
	parking  int // slots that are parking
	stored   int // durable items, all slots

	capped bool   // the breaker has all its probes out, and none has ended since
	asking bool   // the breaker is being asked for a probe
	probed uint64 // probes that have ended
	shut   bool   // the gate said no; it is asked again at
	reopen time.Duration
	turns  uint64

	served   bool // a call has ended
	disabled bool // the consumer answered 410
	paused   bool // an operator paused the replay
	stopping bool // no offers, no replay: lanes are emptied
	full     bool // the queue's last answer to a park
	deadFull bool // the dead letters' last answer
	evicting int  // evictions under way
	evict    int  // evictions wanted

	nudge bool // poll is due at once

	out *effects
}

// partition is the slots of one partition.
type partition struct {
	owned   bool // its table has been read
	closing bool // it is given up: everything is parked
	slots   [router.Slots]*slot
}

// effects are what the owner carries out without its lock.
type effects struct {
	parks   []park
	settled []func()
	told    []func() // calls of hooks
}

// pending says that somebody is to be told something.
func (e *effects) pending() bool { return len(e.settled)+len(e.told) > 0 }

// park is a trigger to hand to the queue.
type park struct {
	s *slot
	e *entry
}

// leftover is a settled item that is still in the queue.
type leftover struct {
	s   *slot
	seq uint64
}

func newCore(cfg *Config, ramp *breaker.Ramp, ordinary func() time.Duration) *core {
	c := &core{cfg: cfg, ramp: ramp, ordinary: ordinary, rate: newBucket(cfg.MaxRate), gone: map[int]bool{}, out: new(effects)}
	c.parks.kind = parkLink
	return c
}

// partition returns the partition of that number.
func (c *core) partition(n int) *partition {
	for n >= len(c.partitions) {
		c.partitions = append(c.partitions, nil)
	}
	p := c.partitions[n]
	if p == nil {
		p = &partition{}
		c.partitions[n] = p
	}
	return p
}

// eachSlot calls f for each slot of the partitions that exist.
func (c *core) eachSlot(f func(p *partition, s *slot)) {
	for _, p := range c.partitions {
		if p == nil {
			continue
		}
		for _, s := range p.slots {
			if s != nil {
				f(p, s)
			}
		}
	}
}

// slot returns the slot of that name.
func (c *core) slot(id Slot) *slot {
	p := c.partition(id.Partition)
	s := p.slots[id.Index]
	if s != nil {
		return s
	}
	if n := len(c.spare); n > 0 {
		s = c.spare[n-1]
		c.spare = c.spare[:n-1]
		s.id = id
	} else {
		s = &slot{id: id}
	}
	p.slots[id.Index] = s
	return s
}

// file puts a slot where it belongs: into the line of what it waits for, or
// out of sight. front keeps it ahead of those that came later. It is called
// after everything that may change that.
func (c *core) file(now time.Duration, s *slot, front bool) {
	c.unfile(s)
	if s.busy {
		return
	}
	if s.state == parking && s.stored == 0 && s.unacked == nil && s.run.n == 0 {
		c.setLive(s)
	}
	if c.state == breaker.Closed {
		s.demoted = false // also of a slot that was at a worker at the close
	}
	switch l := c.lineOf(now, s); {
	case l != nil && front:
		l.unshift(s)
	case l != nil:
		l.push(s)
	case s.idle():
		c.forget(s)
	}
}

func (c *core) lineOf(now time.Duration, s *slot) *line {
	p := c.partitions[s.id.Partition]
	switch {
	case !p.owned:
		return nil
	case s.state != parking:
		if s.run.n == 0 {
			return nil
		}
		return &c.calls
	case s.stored == 0 || p.closing:
		return nil
	case s.notBefore > now:
		c.wakes.set(s, wakeTurn, s.notBefore)
		return &c.waiting
	case s.demoted:
		return &c.demoted
	case s.head != nil:
		return &c.loaded[rank(s.priority)]
	case !s.known:
		return &c.unread
	default:
		return &c.ready[rank(s.priority)]
	}
}

func (c *core) unfile(s *slot) {
	if l := s.links[turnLink].in; l != nil {
		l.remove(s)
	}
}

// forget takes a slot without any content out of the table.
func (c *core) forget(s *slot) {
	c.partitions[s.id.Partition].slots[s.id.Index] = nil
	s.reset()
	c.spare = append(c.spare, s)
}

func (c *core) setLive(s *slot) {
	s.state = live
	s.forgetHead()
	c.parking--
}

// begin gives a slot to a worker; end takes it back.
func (c *core) begin(s *slot) {
	c.unfile(s)
	s.busy = true
	c.busy++
}

func (c *core) end(now time.Duration, s *slot, front bool) {
	s.busy = false
	c.busy--
	if s.orphan {
		return
	}
	if s.state == leaving {
		c.divert(now, s, "")
		return
	}
	c.file(now, s, front)
}

// rank orders the priorities: 0 is the highest.
func rank(p router.Priority) int {
	switch p {
	case router.High:
		return 0
	case router.Low:
		return 2
	}
	return 1
}

package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// taskKind says what a worker is to do.
type taskKind uint8

const (
	idle  taskKind = iota // nothing: wait for a signal
	load                  // fetch the slot's first item from the queue
	call                  // deliver a trigger, if the breaker admits it
	bury                  // store a dead letter
	erase                 // delete a settled item from the queue
	evict                 // make room: give up on the queue's oldest item
)

// task is a worker's next step. The slot is at that worker until the core has
// been told how it went.
type task struct {
	kind taskKind
	s    *slot
	e    *entry // the live trigger, nil for an item of the queue
	item *Item  // the slot's first item, nil for a live trigger

	after  uint64           // load: the item after this
	acks   uint64           // load: durable items that the answer must take into account
	rank   int              // load: where it is counted, unknownRank if its rank is not known
	pace   breaker.RampCall // call
	probed uint64           // call: core.probed when it was given out
	asks   bool             // call: chosen as a probe, and the breaker has not answered yet
	reason DeadReason       // bury
	died   time.Time        // bury: set by the first try, kept when it is repeated
}

// unknownRank is the rank of a slot whose priority is not known.
const unknownRank = 3

// trigger is what a call delivers.
func (t *task) trigger() *router.Trigger {
	if t.e != nil {
		return &t.e.trigger
	}
	return &t.item.Trigger
}

// next gives a worker its next task.
func (c *core) next(now time.Duration) task {
	if c.evict > 0 && c.evicting == 0 {
		c.evicting++
		return task{kind: evict}
	}
	if t := c.nextCall(now); t.kind != idle {
		return t
	}
	return c.nextLoad()
}

// more says whether next is likely to have a task for one more worker.
func (c *core) more() bool {
	if c.evict > 0 && c.evicting == 0 {
		return true
	}
	if !c.still() && (c.unread.n > 0 || c.held() < c.cfg.Concurrency && c.rankOf(&c.ready) < 3) {
		return true
	}
	loaded := !c.still() && c.rankOf(&c.loaded) < 3
	switch {
	case c.disabled || c.state == breaker.Open || c.rate.short:
		return false
	case c.state == breaker.HalfOpen:
		return c.calls.n > 0 && c.probesBacklog() || !c.capped && !c.shut && !c.asking && (c.calls.n > 0 || loaded || c.demoted.n > 0)
	}
	return (c.calls.n > 0 || loaded) && c.ramp.InFlight() < c.ramp.Window()
}

// still says that nothing is replayed.
func (c *core) still() bool { return c.disabled || c.paused || c.stopping }

// nextCall picks a trigger to call, if one may be called now.
func (c *core) nextCall(now time.Duration) task {
	if c.disabled || c.state == breaker.Open {
		return task{}
	}
	if c.state == breaker.HalfOpen {
		return c.nextProbe(now)
	}
	liveWaits, loaded := c.calls.n > 0, !c.still() && c.rankOf(&c.loaded) < 3
	backlogWaits := loaded || !c.still() && c.rankOf(&c.ready) < 3
	source, ok := c.ramp.Next(liveWaits, backlogWaits)
	if !ok || source == breaker.Backlog && !loaded && !liveWaits || !c.rate.take(now) {
		return task{}
	}
	if source == breaker.Live {
		return c.callLive(now, backlogWaits)
	}
	if !loaded { // its turn, but nothing of it is in memory
		if t := c.nextLoad(); t.kind != idle {
			c.rate.giveBack()
			return t
		}
		return c.callLive(now, backlogWaits)
	}
	return c.callBacklog(now, c.pick(&c.loaded), liveWaits)
}

// nextProbe picks the trigger of the next probe: with something parked, the
// first item of a slot of the highest priority, and one that has failed as a
// probe only if there is no other. The breaker is asked for one at a time, so
// that it is the first choice that it admits, whichever worker is faster.
func (c *core) nextProbe(now time.Duration) task {
	t := c.chooseProbe(now)
	t.asks = t.kind == call
	c.asking = c.asking || t.asks
	return t
}

func (c *core) chooseProbe(now time.Duration) task {
	switch {
	case !c.probesBacklog():
		if c.capped || c.asking || c.calls.n == 0 || !c.mayProbe(now) || !c.rate.take(now) {
			return task{}
		}
		return c.callLive(now, false)
	case c.calls.n > 0:
		c.divertAll(now, ReasonProbeCap)
	}
	if c.capped || c.asking || c.stopping || c.unread.n > 0 || c.fetching[unknownRank] > 0 {
		return task{} // the priorities are not known yet: nextLoad sees to it
	}
	for r := range c.loaded {
		if c.loaded[r].n > 0 {
			if !c.mayProbe(now) || !c.rate.take(now) {
				return task{}
			}
			return c.callBacklog(now, c.loaded[r].first, false)
		}
		if c.ready[r].n > 0 {
			return c.load(c.ready[r].first)
		}
		if c.fetching[r] > 0 {
			return task{}
		}
	}
	if s := c.demoted.first; s != nil {
		if s.head == nil {
			return c.load(s)
		}
		if c.mayProbe(now) && c.rate.take(now) {
			return c.callBacklog(now, s, false)
		}
	}
	return task{}
}

// gateEvery is how often a gate that says no is asked again.
const gateEvery = 50 * time.Millisecond

// mayProbe asks the gate.
func (c *core) mayProbe(now time.Duration) bool {
	if c.shut || c.cfg.Gate == nil {
		return !c.shut
	}
	if c.shut = !c.cfg.Gate(); c.shut {
		c.reopen = now + gateEvery
	}
	return !c.shut
}

// nextLoad picks a slot whose first item is to be fetched ahead of its call.
// Slots whose priority is not known come first, whatever their number; of the
// others no more are loaded than workers can call.
func (c *core) nextLoad() task {
	if c.still() {
		return task{}
	}
	if s := c.unread.first; s != nil {
		return c.load(s)
	}
	if c.held() >= c.cfg.Concurrency {
		return task{}
	}
	if c.rankOf(&c.ready) < 3 {
		return c.load(c.pick(&c.ready))
	}
	return task{}
}

// held is how many items are in memory, or on their way there.
func (c *core) held() int {
	n := 0
	for _, fetching := range c.fetching {
		n += fetching
	}
	for r := range c.loaded {
		n += c.loaded[r].n
	}
	return n
}

// rankOf returns the highest rank of which a slot waits, 3 if none does.
func (c *core) rankOf(lines *[3]line) int {
	for r := range lines {
		if lines[r].n > 0 {
			return r
		}
	}
	return len(lines)
}

// pick returns the next slot: one of the highest priority, but every fourth
// time one of the lowest, so that none waits for ever.
func (c *core) pick(lines *[3]line) *slot {
	c.turns++
	if c.turns%4 == 0 {
		for r := len(lines) - 1; r > 0; r-- {
			if lines[r].n > 0 {
				return lines[r].first
			}
		}
	}
	return lines[c.rankOf(lines)].first
}

func (c *core) load(s *slot) task {
	c.begin(s)
	t := task{kind: load, s: s, after: s.after, acks: s.acks, rank: unknownRank}
	if s.known {
		t.rank = rank(s.priority)
	}
	c.fetching[t.rank]++
	return t
}

func (c *core) callLive(now time.Duration, both bool) task {
	s := c.calls.first
	c.begin(s)
	c.lane--
	c.inFlight++
	return task{kind: call, s: s, e: s.run.pop(), probed: c.probed, pace: c.ramp.Start(now, breaker.Live, both)}
}

// callBacklog is the turn of a slot's first item: to be called, or buried.
func (c *core) callBacklog(now time.Duration, s *slot, both bool) task {
	c.begin(s)
	t := task{kind: call, s: s, item: s.head, probed: c.probed}
	switch {
	case s.doom != "":
		t.kind, t.reason, t.died = bury, s.doom, s.died
	case now >= s.expires:
		t.kind, t.reason = bury, DeadExpired
	default:
		c.inFlight++
		t.pace = c.ramp.Start(now, breaker.Backlog, both)
		return t
	}
	c.rate.giveBack()
	return t
}

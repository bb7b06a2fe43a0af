package fallback

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// The model test drives the core by hand, in virtual time, through random
// weather: a consumer that fails, hangs and rejects, a queue that refuses,
// loses answers and is full, an operator who pauses and redrives, restarts.
// After each run it lets the sun shine and checks that the rules held:
//
//   - no two triggers of a device reach the consumer in the wrong order,
//     save for a repeat of what it already had;
//   - nothing is lost: each settled trigger was delivered, or is dead or
//     dropped where the configuration says so;
//   - settled is called at most once.

// errUnknown is an answer that says nothing.
var errUnknown = errors.New("no answer")

// chance gives the numbers that decide a run.
type chance interface{ IntN(n int) int }

// world is everything around the core: devices, consumer, queue, breaker.
type world struct {
	t     testing.TB
	r     chance
	now   time.Duration
	cfg   Config
	core  *core
	brk   *breaker.Breaker
	store *store // survives restarts

	tasks []*running // at workers
	parks []park     // handed over, not answered

	sent    int            // triggers made
	pending []*offered     // in order; not settled: offered again after a restart
	refused []*offered     // offered, but there was no room
	devices map[string]int // number of the newest trigger

	got  map[string]int // newest trigger number that the consumer has, by device
	seen map[string]bool
	dead map[string]DeadReason
	died map[string]bool // ever
	// redriving holds the dead letters that were sent again and are not
	// durable in the queue yet.
	redriving map[string]bool
	dropped   int
	throttled int // answers in a row
	mood      mood
	sunny     bool
	log       []string
}

// offered is a trigger and what its owner knows of it.
type offered struct {
	trigger router.Trigger
	settled int
	times   int // it was offered: only the last time counts
}

// running is a task at a worker.
type running struct {
	task    task
	permit  breaker.Permit
	admit   bool // the breaker has admitted it
	applied bool // the consumer, or the queue, has done it
	item    *Item
	age     time.Duration
}

// mood is how the surroundings behave, in percent.
type mood struct {
	fail, reject, throttle, unsent, gone int // the consumer
	slow                                 int // how rarely a call ends
	lost                                 int // answers of the queue that are lost
	full                                 int // refusals of the queue
}

// store is the durable part: a queue with an unlimited memory for ids.
type store struct {
	seq   uint64
	items []Item
	ids   map[string]uint64
}

func newWorld(t testing.TB, r chance, cfg Config) *world {
	w := &world{
		t: t, r: r, cfg: cfg.withDefaults(),
		store:   &store{ids: map[string]uint64{}},
		devices: map[string]int{}, got: map[string]int{}, seen: map[string]bool{},
		dead: map[string]DeadReason{}, died: map[string]bool{}, redriving: map[string]bool{},
	}
	w.cfg.Hooks.Dropped = func() { w.dropped++ }
	w.start()
	return w
}

// start makes a new core, as after a restart: only the store is left.
func (w *world) start() {
	w.brk = breaker.New(breaker.Config{
		P99: 50 * time.Millisecond, Jitter: breaker.None, Max: 4 * time.Second,
		Probes: min(2, w.cfg.Concurrency), MinSamples: 10,
	})
	ramp := breaker.NewRamp(breaker.RampConfig{Start: min(2, w.cfg.Concurrency), Max: w.cfg.Concurrency})
	w.core = newCore(&w.cfg, ramp, w.brk.Ordinary)
	w.tasks, w.parks = nil, nil
	clear(w.redriving)
}

// own takes both partitions over.
func (w *world) own() {
	for p := range 2 {
		w.ownOne(p)
	}
}

func (w *world) ownOne(p int) {
	table := map[Slot]int{}
	for _, item := range w.store.items {
		if item.Trigger.Partition == p {
			table[Slot{p, item.Trigger.Slot}]++
		}
	}
	w.core.owned(w.now, p, table)
	w.act()
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%8v ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	from := max(0, len(w.log)-120)
	for _, line := range w.log[from:] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// percent is true n times out of a hundred.
func (w *world) percent(n int) bool { return n > 0 && w.r.IntN(100) < n }

// offer makes the next trigger of a device.
func (w *world) offer() {
	if len(w.refused) > 0 {
		return // a partition waits, and so do all its devices
	}
	device := fmt.Sprintf("d%d", w.r.IntN(5))
	w.devices[device]++
	w.sent++
	n := w.devices[device]
	o := &offered{trigger: router.Trigger{
		ID: fmt.Sprintf("%s/%d", device, n), Device: device, Sequence: fmt.Sprintf("%012d", n),
		Partition: int(device[1]) % 2, Slot: int(device[1]) % 3, Priority: router.Priority(w.r.IntN(3)),
	}}
	w.pending = append(w.pending, o)
	w.hand(o)
}

// hand offers a trigger to the core.
func (w *world) hand(o *offered) {
	o.times++
	times := o.times
	e := &entry{trigger: o.trigger, size: 100, settled: func() {
		if times != o.times {
			return // told to an owner who has ended
		}
		if o.settled++; o.settled > 1 {
			w.failf("%s is settled twice", o.trigger.ID)
		}
		w.logf("settled %s", o.trigger.ID)
	}}
	if w.core.offer(w.now, e) {
		w.logf("offered %s", o.trigger.ID)
	} else {
		w.logf("no room for %s", o.trigger.ID)
		w.refused = append(w.refused, o)
	}
	w.act()
}

// act carries out what the core said.
func (w *world) act() {
	for w.core.out.pending() || len(w.core.out.parks) > 0 {
		out := *w.core.out
		*w.core.out = effects{}
		for _, f := range out.settled {
			f()
		}
		for _, f := range out.told {
			f()
		}
		for _, p := range out.parks {
			for _, q := range w.parks {
				if q.s == p.s && q.s.unacked == q.e {
					w.failf("two parks of %v unanswered: %s and %s", p.s.id, q.e.trigger.ID, p.e.trigger.ID)
				}
			}
			w.parks = append(w.parks, p)
			w.logf("park %s (%s)", p.e.trigger.ID, p.e.reason)
		}
	}
	w.check()
}

// check holds the core to its invariants.
func (w *world) check() {
	c := w.core
	lane, outside, stored, parkingSlots, busy := 0, 0, 0, 0, 0
	c.eachSlot(func(p *partition, s *slot) {
		stored += s.stored
		if s.busy {
			busy++
		}
		switch {
		case s.state == live && p.owned:
			lane += s.run.n
		default:
			outside += s.run.n
		}
		if s.unacked != nil {
			outside++
		}
		if s.state == parking {
			parkingSlots++
			if s.backlog() == 0 && !s.busy {
				w.failf("%v is parking, with nothing parked", s.id)
			}
		} else if s.state == live && s.stored > 0 || s.unacked != nil {
			w.failf("%v is live, with %d stored", s.id, s.stored)
		}
		if s.busy && s.links[turnLink].in != nil {
			w.failf("%v is busy and waits for a turn", s.id)
		}
	})
	left := map[*slot]int{}
	for _, l := range c.leftover {
		if left[l.s]++; left[l.s] > l.s.left || c.partition(l.s.id.Partition).slots[l.s.id.Index] != l.s {
			w.failf("a leftover of %v, which has %d", l.s.id, l.s.left)
		}
	}
	for _, r := range w.tasks {
		if s := r.task.s; s != nil && s.orphan && s.busy {
			busy++
		}
	}
	if lane != c.lane || outside != c.outCount || stored != c.stored || parkingSlots != c.parking || busy != c.busy {
		w.failf("sums: lane %d/%d outside %d/%d stored %d/%d parking %d/%d busy %d/%d",
			c.lane, lane, c.outCount, outside, c.stored, stored, c.parking, parkingSlots, c.busy, busy)
	}
	if c.lane > c.cfg.Lane {
		w.failf("lane holds %d", c.lane)
	}
	if c.held() > 0 && c.inFlight > c.cfg.Concurrency {
		w.failf("%d calls in flight", c.inFlight)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.now += d
	w.brk.Poll(w.now)
	w.core.observe(w.now, w.brk.State())
	w.core.poll(w.now)
	w.act()
	w.retryRefused()
}

// retryRefused offers again what found no room.
func (w *world) retryRefused() {
	again := w.refused
	w.refused = nil
	for i, o := range again {
		if len(w.refused) > 0 {
			w.refused = append(w.refused, again[i:]...)
			return
		}
		w.hand(o)
	}
}

// sweep deletes what could not be deleted, and looks for what was overlooked.
func (w *world) sweep() {
	if len(w.core.leftover) > 0 {
		l := w.core.leftover[0]
		w.store.delete(l.seq)
		w.core.swept(w.now, l)
		w.act()
	}
	if len(w.store.items) > 0 {
		w.core.found(w.now, &w.store.items[0])
		w.act()
	}
}

// restart kills the process: what is not in the store is gone, and whatever
// was not settled is offered again, in order.
func (w *world) restart() {
	w.logf("restart")
	for _, p := range w.parks { // still on their way, or lost
		if w.percent(50) {
			w.store.park(p.e.trigger, w.now)
		}
	}
	for _, r := range w.tasks {
		if r.admit && r.task.kind == call && w.percent(50) {
			w.receive(r.task.trigger())
		}
	}
	w.start()
	w.own()
	w.offerAgain(func(*offered) bool { return true })
}

// offerAgain is what a partition's new owner does: it offers, in order, what
// is not settled.
func (w *world) offerAgain(concerned func(*offered) bool) {
	var kept, again []*offered
	for _, o := range w.refused {
		if !concerned(o) {
			kept = append(kept, o)
		}
	}
	for _, o := range w.pending {
		if o.settled == 0 && concerned(o) {
			o.times++ // the owner before this one has ended
			again = append(again, o)
		}
	}
	w.refused = append(kept, again...)
	w.retryRefused()
}

// disown gives a partition up, in good order or not, and takes it over again.
func (w *world) disown() {
	n := w.r.IntN(2)
	w.logf("disown %d", n)
	p := w.core.partition(n)
	p.closing = true
	w.core.evacuate(w.now, p)
	w.act()
	for range w.r.IntN(60) {
		w.answer()
		w.work()
	}
	w.logf("drop %d, quiet %v", n, p.quiet())
	w.core.drop(n)
	w.act()
	// What is on its way to the queue arrives before the next owner asks, or
	// never.
	for i := len(w.parks) - 1; i >= 0; i-- {
		if late := w.parks[i]; late.e.trigger.Partition == n {
			w.parks = slices.Delete(w.parks, i, i+1)
			if w.percent(50) {
				w.store.park(late.e.trigger, w.now)
			}
			w.core.parked(w.now, late, errUnknown)
		}
	}
	w.act()
	w.ownOne(n)
	w.offerAgain(func(o *offered) bool { return o.trigger.Partition == n })
}

// stop ends the process in good order, as far as the weather lets it, and
// starts it again.
func (w *world) stop() {
	w.logf("stop")
	w.core.stop()
	w.refused = nil // whoever waits in Offer is sent away
	for range w.r.IntN(100) {
		w.take()
		w.work()
		w.answer()
	}
	w.core.evacuateAll(w.now)
	w.act()
	for range 400 {
		w.answer()
		w.work()
		w.pass(10 * time.Millisecond)
	}
	if w.mood == (mood{}) && !w.core.quiet() && w.core.onFull() != Drop {
		w.failf("it doesn't stop: lane %d, outside %d, busy %d", w.core.lane, w.core.outCount, w.core.busy)
	}
	w.restart()
}

// redrive sends a dead letter again.
func (w *world) redrive() {
	for _, o := range w.pending {
		id := o.trigger.ID
		if w.dead[id] == "" || w.redriving[id] || !w.percent(30) {
			continue
		}
		w.redriving[id] = true
		t := o.trigger
		t.Redriven = true
		w.logf("redrive %s", id)
		w.core.redrive(w.now, &entry{trigger: t, size: 100, settled: func() {
			w.logf("redriven %s", id)
			delete(w.dead, id)
			delete(w.redriving, id)
		}})
		w.act()
		return
	}
}

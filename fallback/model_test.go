package fallback

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

	got     map[string]int // newest trigger number that the consumer has, by device
	seen    map[string]bool
	dead    map[string]DeadReason
	dropped int
	mood    mood
	sunny   bool
	log     []string
}

// offered is a trigger and what its owner knows of it.
type offered struct {
	trigger router.Trigger
	number  int
	settled int
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
		dead: map[string]DeadReason{},
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
}

// own takes both partitions over.
func (w *world) own() {
	for p := range 2 {
		table := map[Slot]int{}
		for _, item := range w.store.items {
			if item.Trigger.Partition == p {
				table[Slot{p, item.Trigger.Slot}]++
			}
		}
		w.core.owned(w.now, p, table)
	}
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
	o := &offered{number: n, trigger: router.Trigger{
		ID: fmt.Sprintf("%s/%d", device, n), Device: device, Sequence: fmt.Sprintf("%012d", n),
		Partition: int(device[1]) % 2, Slot: int(device[1]) % 3, Priority: router.Priority(w.r.IntN(3)),
	}}
	w.pending = append(w.pending, o)
	w.hand(o)
}

// hand offers a trigger to the core.
func (w *world) hand(o *offered) {
	core := w.core
	e := &entry{trigger: o.trigger, size: 100, settled: func() {
		if core != w.core {
			w.failf("%s is settled by a core that has ended", o.trigger.ID)
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
	for w.core.out.any() {
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
				if q.s == p.s {
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

// answer answers a random park.
func (w *world) answer() {
	if len(w.parks) == 0 {
		return
	}
	i := w.r.IntN(len(w.parks))
	p := w.parks[i]
	w.parks = slices.Delete(w.parks, i, i+1)
	var err error
	switch {
	case w.percent(w.mood.full):
		err = ErrFull
	case w.percent(w.mood.lost):
		err = errUnknown
		if w.percent(50) {
			w.store.park(p.e.trigger, w.now) // applied, but the answer is lost
		}
	default:
		err = w.store.park(p.e.trigger, w.now)
	}
	w.logf("park of %s: %v", p.e.trigger.ID, err)
	w.core.observe(w.now, w.brk.State())
	w.core.parked(w.now, p, err)
	w.act()
}

func (s *store) park(t router.Trigger, now time.Duration) error {
	if _, ok := s.ids[t.ID]; ok && !t.Redriven {
		return ErrDuplicate
	}
	s.seq++
	s.ids[t.ID] = s.seq
	s.items = append(s.items, Item{Trigger: t, Seq: s.seq, Parked: time.Unix(0, int64(now))})
	return nil
}

func (s *store) head(id Slot, after uint64) *Item {
	for i := range s.items {
		t := &s.items[i].Trigger
		if s.items[i].Seq > after && t.Partition == id.Partition && t.Slot == id.Index {
			item := s.items[i]
			return &item
		}
	}
	return nil
}

func (s *store) delete(seq uint64) {
	s.items = slices.DeleteFunc(s.items, func(i Item) bool { return i.Seq == seq })
}

// take gives a worker its next task, if there is one and a worker is free.
func (w *world) take() {
	if len(w.tasks) >= w.cfg.Concurrency {
		return
	}
	t := w.core.next(w.now)
	w.act()
	w.begin(t)
}

// begin begins a task.
func (w *world) begin(t task) {
	if t.kind == idle {
		return
	}
	for _, other := range w.tasks {
		if t.s != nil && other.task.s == t.s {
			w.failf("two tasks of %v", t.s.id)
		}
	}
	w.tasks = append(w.tasks, &running{task: t})
	w.logf("task %v %s", t.kind, w.name(t))
}

func (w *world) name(t task) string {
	switch {
	case t.e != nil:
		return t.e.trigger.ID
	case t.item != nil:
		return t.item.Trigger.ID + " from the queue"
	case t.s != nil:
		return fmt.Sprint(t.s.id)
	}
	return ""
}

// work lets a random task make its next step.
func (w *world) work() {
	if len(w.tasks) == 0 {
		return
	}
	i := w.r.IntN(len(w.tasks))
	r := w.tasks[i]
	follow, done := w.advance(r)
	w.act()
	if done {
		w.tasks = slices.Delete(w.tasks, i, i+1)
		w.begin(follow)
	}
}

// advance makes one step of a task: first it is applied, then it is answered,
// with anything in between.
func (w *world) advance(r *running) (follow task, done bool) {
	w.core.observe(w.now, w.brk.State())
	t := r.task
	switch t.kind {
	case load:
		if !r.applied {
			r.applied, r.item = true, w.store.head(t.s.id, t.after)
			return task{}, false
		}
		if w.percent(w.mood.lost) {
			return w.core.fetched(w.now, t, nil, 0, errUnknown), true
		}
		if r.item != nil {
			r.age = w.now - time.Duration(r.item.Parked.UnixNano())
		}
		return w.core.fetched(w.now, t, r.item, r.age, nil), true
	case call:
		return w.call(r)
	case bury:
		return w.buryTask(r)
	case erase:
		if w.percent(w.mood.lost) {
			if w.percent(50) {
				w.store.delete(t.item.Seq)
			}
			return w.core.erased(w.now, t, errUnknown), true
		}
		w.store.delete(t.item.Seq)
		return w.core.erased(w.now, t, nil), true
	}
	return w.evict(), true
}

func (w *world) buryTask(r *running) (task, bool) {
	t := r.task
	id := t.trigger().ID
	if w.percent(w.mood.lost) {
		if w.percent(50) {
			w.bury(id, t.reason)
		}
		return w.core.buried(w.now, t, false, errUnknown), true
	}
	if w.percent(w.mood.full) {
		return w.core.buried(w.now, t, true, ErrFull), true
	}
	w.bury(id, t.reason)
	return w.core.buried(w.now, t, false, nil), true
}

func (w *world) bury(id string, reason DeadReason) {
	w.dead[id] = reason
	w.logf("%s is dead: %s", id, reason)
}

func (w *world) evict() task {
	made := false
	if len(w.store.items) > 0 {
		item := w.store.items[0]
		t := w.core.claim(&item)
		if t.kind == bury {
			w.bury(item.Trigger.ID, t.reason)
			t = w.core.passed(t)
		}
		if t.kind == erase {
			w.store.delete(item.Seq)
			w.core.erased(w.now, t, nil)
			made = true
		}
	}
	w.core.evicted(made)
	return task{}
}

// call makes a step of a call: ask the breaker, reach the consumer, end.
func (w *world) call(r *running) (task, bool) {
	t := r.task
	if !r.admit {
		p, err := w.brk.Admit(w.now)
		if err != nil {
			why := ReasonOpen
			if errors.Is(err, breaker.ErrProbeCap) {
				why = ReasonProbeCap
			}
			w.core.observe(w.now, w.brk.State())
			w.logf("%s is refused: %s", w.name(t), why)
			return w.core.refused(w.now, t, why), true
		}
		r.permit, r.admit = p, true
		return task{}, false
	}
	if !w.sunny && w.percent(w.mood.slow) {
		return task{}, false
	}
	res := w.consumer(t.trigger())
	res.probe = r.permit.Probe()
	kind := w.core.kind(res)
	res.verdict = r.permit.Report(w.now, breaker.Outcome{Kind: kind, RetryAfter: res.retryAfter})
	w.core.observe(w.now, w.brk.State())
	w.logf("%s: ok=%v cause=%v probe=%v verdict=%v", w.name(t), res.ok, res.cause, res.probe, res.verdict)
	return w.core.called(w.now, t, res), true
}

// consumer receives a trigger, or not; a failed one may have been received.
func (w *world) consumer(t *router.Trigger) result {
	switch {
	case w.percent(w.mood.reject):
		return result{cause: router.Rejected, text: "rejected"}
	case w.percent(w.mood.unsent):
		return result{cause: router.Unsent, text: "unsent"}
	case w.percent(w.mood.gone):
		return result{cause: router.Gone, text: "gone"}
	case w.percent(w.mood.throttle):
		return result{cause: router.Throttled, text: "throttled", retryAfter: time.Duration(w.r.IntN(3)) * time.Second}
	case w.percent(w.mood.fail):
		if w.percent(30) {
			w.receive(t)
		}
		return result{cause: router.Failed, text: "failed"}
	}
	w.receive(t)
	return result{ok: true}
}

// receive is the consumer's view of order.
func (w *world) receive(t *router.Trigger) {
	var n int
	if _, err := fmt.Sscanf(t.Sequence, "%d", &n); err != nil {
		w.failf("sequence %q: %v", t.Sequence, err)
	}
	w.logf("the consumer has %s", t.ID)
	if n < w.got[t.Device] && !w.seen[t.ID] && !t.Redriven {
		w.failf("%s comes after %s/%d", t.ID, t.Device, w.got[t.Device])
	}
	w.seen[t.ID] = true
	w.got[t.Device] = max(n, w.got[t.Device])
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
	var again []*offered
	for _, o := range w.pending {
		if o.settled == 0 {
			again = append(again, o)
		}
	}
	w.pending, w.refused = again, nil
	for i, o := range again {
		if len(w.refused) > 0 {
			w.refused = append(w.refused, again[i:]...)
			break
		}
		w.hand(o)
	}
}

// weather changes the mood.
func (w *world) weather() {
	w.mood = mood{}
	switch w.r.IntN(8) {
	case 0:
		w.mood = mood{fail: 100}
	case 1:
		w.mood = mood{slow: 95, fail: 20}
	case 2:
		w.mood = mood{fail: 30, lost: 30}
	case 3:
		w.mood = mood{full: 60, fail: 50}
	case 4:
		w.mood = mood{reject: 20, throttle: 20, unsent: 10, full: 20}
	case 5:
		w.mood = mood{lost: 60, slow: 50}
	}
}

// step does one random thing.
func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 25:
		w.offer()
	case n < 45:
		w.answer()
	case n < 65:
		w.take()
	case n < 88:
		w.work()
	case n < 95:
		w.pass(time.Duration(w.r.IntN(100)) * time.Millisecond)
	case n < 96:
		w.pass(time.Duration(w.r.IntN(5000)) * time.Millisecond)
	case n < 97:
		w.weather()
	case n < 98:
		w.sweep()
	case n < 99:
		w.core.paused = !w.core.paused
	default:
		if w.percent(20) {
			w.restart()
		}
	}
}

// shine lets everything end well.
func (w *world) shine() {
	w.logf("sunshine")
	w.mood, w.sunny, w.core.paused, w.core.disabled = mood{}, true, false, false
	for range 200_000 {
		for len(w.parks) > 0 {
			w.answer()
		}
		for range w.cfg.Concurrency {
			w.take()
		}
		for len(w.tasks) > 0 {
			w.work()
		}
		w.sweep()
		if len(w.store.items) == 0 && w.core.quiet() && len(w.refused) == 0 && w.core.parking == 0 {
			return
		}
		w.pass(20 * time.Millisecond)
	}
	w.failf("it never ends: %d stored, %d in memory, state %v, parking %d, refused %d",
		len(w.store.items), w.core.outCount+w.core.lane, w.core.state, w.core.parking, len(w.refused))
}

// verify checks, at the end, that nothing is lost.
func (w *world) verify() {
	lost := 0
	for device, n := range w.devices {
		for i := 1; i <= n; i++ {
			id := fmt.Sprintf("%s/%d", device, i)
			if !w.seen[id] && w.dead[id] == "" {
				lost++
				w.logf("lost %s", id)
			}
		}
	}
	if lost > w.dropped {
		w.failf("%d of %d are lost, %d were dropped", lost, w.sent, w.dropped)
	}
	for _, o := range w.pending {
		if o.settled != 1 {
			w.failf("%s is settled %d times", o.trigger.ID, o.settled)
		}
	}
}

// modelConfig draws a configuration that makes the bounds matter.
func modelConfig(r chance) Config {
	return Config{
		Partitions: None, Concurrency: 1 + r.IntN(4), Lane: 1 + r.IntN(12),
		MaxWaiting: 300 + r.IntN(3000), MaxParks: 1 + r.IntN(4), MaxAttempts: 1 + r.IntN(8),
		MaxAge: []time.Duration{None, time.Minute, 5 * time.Second}[r.IntN(3)],
		OnFull: OnFull(r.IntN(3)), MaxRate: []float64{0, 0, 500}[r.IntN(3)],
	}
}

func runModel(t testing.TB, r chance, steps int) {
	w := newWorld(t, r, modelConfig(r))
	if r.IntN(4) > 0 {
		w.own()
	}
	for i := range steps {
		if i == steps/4 {
			w.own()
		}
		w.step()
	}
	w.shine()
	w.verify()
}

func TestR2_NoTriggerOvertakesAnotherOfItsDevice(t *testing.T) {
	runs := 4000
	if testing.Short() {
		runs = 400
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, r, 600) }) {
			return
		}
	}
}

// bytesChance decides by the bytes of a fuzz input.
type bytesChance struct {
	data []byte
	rest *rand.Rand
}

func (b *bytesChance) IntN(n int) int {
	if len(b.data) == 0 {
		return b.rest.IntN(n)
	}
	v := int(b.data[0])
	b.data = b.data[1:]
	return v * n / 256
}

func FuzzSlots(f *testing.F) {
	f.Add([]byte("live, parking, live"))
	f.Add([]byte{0, 200, 30, 60, 250, 251, 252, 1, 2, 3, 99, 98, 97})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			t.Skip("long enough before")
		}
		n := len(data)
		runModel(t, &bytesChance{data, rand.New(rand.NewPCG(1, 2))}, n)
	})
}

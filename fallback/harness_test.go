package fallback_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// consumer is a sink in virtual time that remembers what it got.
type consumer struct {
	mu sync.Mutex // guards all below
	// behave says how long a call takes and how it ends; nil: 5 ms, well.
	behave   func(n int, t router.Trigger) (time.Duration, error)
	calls    []consumerCall
	got      []router.Trigger // taken, in order
	inFlight int
	peak     int // most calls in flight since the last reset
}

type consumerCall struct {
	at time.Time
	id string
}

func (c *consumer) set(behave func(n int, t router.Trigger) (time.Duration, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behave = behave
}

func (c *consumer) Deliver(ctx context.Context, t router.Trigger) error {
	c.mu.Lock()
	took, err := 5*time.Millisecond, error(nil)
	behave := c.behave
	n := len(c.calls)
	c.calls = append(c.calls, consumerCall{time.Now(), t.ID})
	c.inFlight++
	c.peak = max(c.peak, c.inFlight)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.inFlight--
		c.mu.Unlock()
	}()
	if behave != nil {
		took, err = behave(n, t)
	}
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err == nil {
		c.mu.Lock()
		c.got = append(c.got, t)
		c.mu.Unlock()
	}
	return err
}

// count returns how many calls were made.
func (c *consumer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// list returns the calls that were made.
func (c *consumer) list() []consumerCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// taken returns what it took, in order.
func (c *consumer) taken() []router.Trigger {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// callsOf returns when a trigger was called.
func (c *consumer) callsOf(id string) (at []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.id == id {
			at = append(at, call.at)
		}
	}
	return at
}

// ids returns the ids of what it took, in order.
func (c *consumer) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]string, len(c.got))
	for i, t := range c.got {
		ids[i] = t.ID
	}
	return ids
}

func (c *consumer) resetPeak() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peak = c.inFlight
}

func (c *consumer) peakInFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak
}

// always is a behaviour that never changes.
func always(took time.Duration, err error) func(int, router.Trigger) (time.Duration, error) {
	return func(int, router.Trigger) (time.Duration, error) { return took, err }
}

// rig is an outlet with all that is around it.
type rig struct {
	t        *testing.T
	consumer *consumer
	queue    fallback.Queue
	mem      *fallback.MemQueue
	breaker  breaker.Config
	cfg      fallback.Config

	outlet *fallback.Outlet
	cancel context.CancelFunc
	ended  chan error

	mu          sync.Mutex // guards all below
	transitions []breaker.Transition
	diverted    map[fallback.Reason]int
	died        map[fallback.DeadReason]int
	dropped     int
	panics      int
	disabled    int
	queueErrors []string
	offered     []string
	settled     map[string]int
}

func newRig(t *testing.T) *rig {
	mem := fallback.NewMemQueue(0, 0)
	return &rig{
		t: t, consumer: &consumer{}, mem: mem, queue: mem,
		breaker:  breaker.Config{Jitter: breaker.None},
		diverted: map[fallback.Reason]int{}, died: map[fallback.DeadReason]int{}, settled: map[string]int{},
	}
}

// start runs the outlet; as a restart, if it ran before.
func (r *rig) start() {
	r.breaker.Hooks.Transition = func(tr breaker.Transition) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.transitions = append(r.transitions, tr)
	}
	count := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
	}
	r.cfg.Hooks.Diverted = func(why fallback.Reason) { count(func() { r.diverted[why]++ }) }
	r.cfg.Hooks.Died = func(why fallback.DeadReason) { count(func() { r.died[why]++ }) }
	r.cfg.Hooks.Dropped = func() { count(func() { r.dropped++ }) }
	r.cfg.Hooks.Panicked = func(any, []byte) { count(func() { r.panics++ }) }
	r.cfg.Hooks.Disabled = func() { count(func() { r.disabled++ }) }
	r.cfg.Hooks.QueueError = func(doing string, _ error) { count(func() { r.queueErrors = append(r.queueErrors, doing) }) }
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.outlet = fallback.New(r.consumer, breaker.New(r.breaker), r.queue, fallback.With(r.cfg))
	r.ended = make(chan error, 1)
	go func(o *fallback.Outlet, ended chan<- error) { ended <- o.Run(ctx) }(r.outlet, r.ended)
	synctest.Wait()
}

// stop stops it and returns what Run returned.
func (r *rig) stop() error {
	r.cancel()
	return <-r.ended
}

// trigger makes the nth trigger of a device.
func trigger(device string, n int) router.Trigger {
	return router.Trigger{
		ID: fmt.Sprintf("%s/%d", device, n), Sequence: fmt.Sprintf("%020d", n), Device: device,
		Fence: "depot", Partition: router.PartitionOf(device, 4), Slot: router.SlotOf(device),
		Body: []byte(`{"specversion":"1.0"}`),
	}
}

// offer offers a trigger and counts that it is settled.
func (r *rig) offer(t router.Trigger) {
	r.mu.Lock()
	r.offered = append(r.offered, t.ID)
	r.mu.Unlock()
	r.outlet.Offer(r.t.Context(), t, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled[t.ID]++
	})
}

// unsettled returns what was offered and is not settled, and fails the test
// for what was settled twice.
func (r *rig) unsettled() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.offered {
		switch r.settled[id] {
		case 0:
			ids = append(ids, id)
		case 1:
		default:
			r.t.Errorf("%s was settled %d times", id, r.settled[id])
		}
	}
	return ids
}

// traffic offers one trigger every interval, of devices in turn.
func (r *rig) traffic(devices, n int, every time.Duration) {
	start := len(r.offered)
	for i := range n {
		r.offer(trigger(fmt.Sprintf("dev-%d", (start+i)%devices), start+i))
		time.Sleep(every)
	}
}

// drained waits until nothing is parked or waits in memory.
func (r *rig) drained(within time.Duration) {
	r.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		s := r.outlet.Status()
		if s.Backlog+s.Lane+s.InFlight == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not drained within %v: %+v", within, s)
		}
	}
}

// checkAll checks that everything offered has arrived, in order per device,
// once each.
func (r *rig) checkAll() {
	r.t.Helper()
	if left := r.unsettled(); len(left) > 0 {
		r.t.Errorf("not settled: %q", left)
	}
	r.checkOrder()
	got := r.consumer.ids()
	slices.Sort(got)
	want := slices.Clone(r.offered)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("got %d triggers, want %d once each", len(got), len(want))
	}
}

// checkOrder checks the order per device; a repeat is none.
func (r *rig) checkOrder() {
	r.t.Helper()
	r.consumer.mu.Lock()
	defer r.consumer.mu.Unlock()
	newest := map[string]string{}
	seen := map[string]bool{}
	for _, t := range r.consumer.got {
		if t.Sequence < newest[t.Device] && !seen[t.ID] && !t.Redriven {
			r.t.Errorf("%s came after %s", t.ID, newest[t.Device])
		}
		seen[t.ID] = true
		newest[t.Device] = max(newest[t.Device], t.Sequence)
	}
}

// states returns the row of states that the breaker went to.
func (r *rig) states() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tr := range r.transitions {
		list = append(list, tr.To.String())
	}
	return list
}

func (r *rig) closes() int {
	n := 0
	for _, s := range r.states() {
		if s == "closed" {
			n++
		}
	}
	return n
}

// counted reads a counter of the rig.
func (r *rig) counted(n *int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *n
}

func (r *rig) diverts() map[fallback.Reason]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.diverted)
}

func (r *rig) deaths() map[fallback.DeadReason]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.died)
}

func (r *rig) moves() []breaker.Transition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.transitions)
}

func (r *rig) errorsTold() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queueErrors)
}

// story runs a test in virtual time, with an outlet that is stopped at its
// end.
func story(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer func() {
			if r.cancel == nil {
				return
			}
			if err := r.stop(); err != nil {
				t.Errorf("run: %v", err)
			}
		}()
		f(t, r)
	})
}

package router_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// The promise of durable mode, over random journeys and random kills: the
// triggers that end up delivered, their sequences and their order per device
// are those of a run that nothing disturbed.

// life is one start of a partition until it is killed: after fuse more steps
// of its surroundings (a batch read, an offer, a delivery, a commit begun or
// ended) everything around it is dead.
type life struct {
	fuse atomic.Int64
	dead atomic.Bool
	kill context.CancelFunc
}

// step says whether the life goes on.
func (l *life) step() bool {
	if l.dead.Load() {
		return false
	}
	if l.fuse.Add(-1) == 0 {
		l.dead.Store(true)
		l.kill()
		return false
	}
	return true
}

// downstream is a consumer behind an outlet that keeps each device's order,
// delivers after a while, and settles after another. What it has accepted is
// durable: it outlives the lives.
type downstream struct {
	mu       sync.Mutex
	accepted map[string]string   // sequence by id
	highest  map[string]string   // by device, as a consumer keeps it
	fresh    map[string][]string // ids by device, late duplicates dropped
	faults   []string
}

func newDownstream() *downstream {
	return &downstream{accepted: map[string]string{}, highest: map[string]string{}, fresh: map[string][]string{}}
}

func (d *downstream) accept(t router.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq, again := d.accepted[t.ID]; again && seq != t.Sequence {
		d.faults = append(d.faults, fmt.Sprintf("%s came as %s and as %s", t.ID, seq, t.Sequence))
	}
	d.accepted[t.ID] = t.Sequence
	if t.Sequence > d.highest[t.Device] {
		d.highest[t.Device] = t.Sequence
		d.fresh[t.Device] = append(d.fresh[t.Device], t.ID)
	}
}

// wire is the outlet of one life.
type wire struct {
	to   *downstream
	life *life
	rng  *rand.Rand // of the loop
	slow time.Duration

	wg   sync.WaitGroup
	tail map[string]chan struct{} // by device: closed when its last is delivered
}

func newWire(to *downstream, l *life, rng *rand.Rand) *wire {
	return &wire{
		to: to, life: l, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)),
		slow: 200 * time.Millisecond, tail: map[string]chan struct{}{},
	}
}

func (w *wire) Offer(_ context.Context, t router.Trigger, settled func()) {
	if !w.life.step() {
		return
	}
	if w.rng.IntN(4) == 0 { // delivered before Offer returns
		if before := w.tail[t.Device]; before == nil {
			w.to.accept(t)
			if w.life.step() {
				settled()
			}
			return
		}
	}
	before, done := w.tail[t.Device], make(chan struct{})
	w.tail[t.Device] = done
	toDeliver, toSettle := w.pause(), w.pause()
	w.wg.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		time.Sleep(toDeliver)
		if !w.life.step() {
			return
		}
		w.to.accept(t)
		w.wg.Go(func() { // the ack may come late, and in any order
			time.Sleep(toSettle)
			if w.life.step() {
				settled()
			}
		})
	})
}

func (w *wire) pause() time.Duration {
	if w.rng.IntN(2) == 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(w.slow)))
}

// mortal is a Store whose commits may go wrong, and end with the life.
type mortal struct {
	owner
	life     *life
	rng      *rand.Rand // of the committer
	reliable bool       // only the kill harms it
}

func (m *mortal) Commit(ctx context.Context, partition int, p router.Progress) error {
	if !m.life.step() {
		return errFate
	}
	time.Sleep(time.Duration(m.rng.IntN(20)) * time.Millisecond)
	m.fate = func() fate {
		if !m.reliable && m.rng.IntN(5) == 0 {
			return fate(m.rng.IntN(fateChoices))
		}
		return stored
	}
	if m.life.dead.Load() && m.rng.IntN(2) == 0 {
		return errFate // killed before it reached the server
	}
	err := m.owner.Commit(ctx, partition, p)
	if !m.life.step() {
		return errFate // killed before the answer came back
	}
	return err
}

// source steps the life with every batch, and gives flushes time in between.
type source struct {
	*tape
	life *life
	pace time.Duration
}

func (s source) Read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	in := make(chan *router.Batch)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { _ = s.tape.Read(ctx, partition, from, in) })
	for {
		select {
		case b := <-in:
			if !s.life.step() || !sleep(ctx, s.pace) {
				return nil
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// journey is a log of a few devices that wander among a few fences, with
// late, repeated and refused fixes, ticks, and a long silence at the end in
// which every timer fires.
func journey(rng *rand.Rand) []router.Message {
	var log []router.Message
	seq, clock := uint64(0), t0
	east := map[string]float64{}
	ts := map[string]int64{}
	for range 30 + rng.IntN(60) {
		seq += 1 + rng.Uint64N(3) // other partitions' messages lie in between
		clock += rng.Int64N(20_000)
		device := fmt.Sprint("d", rng.IntN(4))
		switch rng.IntN(12) {
		case 0:
			log = append(log, tick(seq, clock))
			continue
		case 1:
			log = append(log, router.Message{Kind: router.RefusedMessage, Seq: seq, Stored: clock})
			continue
		}
		east[device] += float64(rng.IntN(9)-4) * 700
		m := at(seq, device, clock, east[device])
		switch rng.IntN(10) {
		case 0:
			m.Fix.TS = max(ts[device], 1) // a duplicate
		case 1:
			m.Fix.TS = clock - 100_000 // late, most often
		case 2:
			m.Fix.TS = clock + rng.Int64N(30_000) // its clock is ahead
		}
		m.Fix.Props = fmt.Appendf(nil, `{"n":%d}`, seq)
		ts[device] = max(ts[device], m.Fix.TS)
		log = append(log, m)
	}
	for range 3 {
		seq += 1 + rng.Uint64N(3)
		clock += 3_600_000
		log = append(log, tick(seq, clock))
	}
	return log
}

func crashConfig(rng *rand.Rand) geofence.Config {
	cfg := geofence.Config{Dwell: []time.Duration{30 * time.Second, 2 * time.Minute}, Cross: true}
	if rng.IntN(2) == 0 {
		cfg.Inside = true
	}
	switch rng.IntN(5) {
	case 0:
		cfg.Confirm = 2
	case 1:
		cfg.Reorder = 15 * time.Second
	case 2:
		cfg.SilentAfter = time.Minute
	case 3:
		cfg.MaxSpeed = 100
	}
	return cfg
}

// run lets a partition live over the log until it dies or has done it all.
func (d *downstream) run(t *testing.T, rng *rand.Rand, log []router.Message, v *vault, ix *geofence.Index, cfg geofence.Config, fuse int64, calm bool) (finished bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &life{kill: cancel}
	l.fuse.Store(fuse)
	w := newWire(d, l, rng)
	store := &mortal{owner: owner{v: v}, life: l, rng: rand.New(rand.NewPCG(rng.Uint64(), 2))}
	var sto router.Store = store
	if calm {
		sto = &store.owner
	}
	most := compile(t, router.MatchConfig{Fences: []string{"a", "b"}, Devices: []string{"d0", "d1", "d2"}}, router.MatchConfig{Transitions: []string{"silent"}})
	p := router.NewPartition(router.PartitionConfig{
		Namespace: "acme", Source: source{newTape(log...), l, time.Duration(rng.IntN(800)) * time.Millisecond}, Store: sto, Fences: ix, Tracker: cfg,
		Consumers:  consumers(router.Consumer{Name: "most", Match: most, Outlet: w}),
		FlushAfter: time.Duration(1+rng.IntN(1000)) * time.Millisecond,
	})
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	end := log[len(log)-1].Seq + 1
	for ctx.Err() == nil && p.Status().Committed < end {
		time.Sleep(100 * time.Millisecond)
	}
	finished = ctx.Err() == nil
	time.Sleep(20 * time.Second) // time to flush everything, in spite of what goes wrong
	if st := p.Status(); ctx.Err() == nil && (st.Unsaved != 0 || st.Unsettled != 0 || st.ReplayFrom != end) {
		t.Errorf("at rest, and %+v", st)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if finished && rng.IntN(2) == 0 {
		closing, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := p.Close(closing); err != nil && calm {
			t.Error(err)
		}
		cancel()
	}
	w.wg.Wait()
	return finished
}

func TestR6_KilledAnywhereGivesTheSameTriggers(t *testing.T) {
	runs := 3000
	if testing.Short() {
		runs = 200
	}
	for half := range 2 {
		t.Run(fmt.Sprint("half ", half), func(t *testing.T) {
			t.Parallel()
			killAnywhere(t, half, runs)
		})
	}
}

// killAnywhere plays every second run, from the first on.
func killAnywhere(t *testing.T, first, runs int) {
	kills := 0
	for n := first; n < runs; n += 2 {
		synctest.Test(t, func(t *testing.T) {
			rng := fakeSeed(n)
			log := journey(rng)
			cfg := crashConfig(rng)
			ix := index(t, circles(t, "a", "b", "c")...)

			calm := newDownstream()
			if !calm.run(t, rng, log, newVault(), ix, cfg, -1, true) {
				t.Fatal("the undisturbed run did not finish")
			}
			torn, v := newDownstream(), newVault()
			for !torn.run(t, rng, log, v, ix, cfg, 1+rng.Int64N(60), false) {
				kills++
				if rng.IntN(20) == 0 { // it must end some time
					torn.run(t, rng, log, v, ix, cfg, -1, false)
					break
				}
			}
			compareRuns(t, n, torn, calm)
		})
		if t.Failed() {
			t.Fatalf("failed in run %d", n)
		}
	}
	t.Logf("%d kills in every second of %d runs", kills, runs)
}

// compareRuns holds what a consumer has after kills against what it has
// without.
func compareRuns(t *testing.T, n int, torn, calm *downstream) {
	t.Helper()
	if !maps.Equal(torn.accepted, calm.accepted) {
		t.Errorf("run %d: with kills %d triggers, without %d", n, len(torn.accepted), len(calm.accepted))
	}
	for device, want := range calm.fresh {
		if got := torn.fresh[device]; !slices.Equal(got, want) {
			t.Errorf("run %d: a consumer of %s that drops late duplicates has %q, without kills %q", n, device, got, want)
		}
	}
	for _, fault := range slices.Concat(torn.faults, calm.faults) {
		t.Errorf("run %d: %s", n, fault)
	}
}

package router_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// G9: a fence is edited and deleted while devices are inside.
func TestG9_FenceChangeJudgesDevicesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ix := index(t, circle(t, "a", 0, "").WithRevision(1), circle(t, "b", 0, "").WithRevision(2))
		r := newRig(t, ix, at(7, "van", t0, 0), at(8, "bus", t0, 5000))
		r.start()
		r.expect("van enter a", "van enter b")
		change := func(c geofence.Change, ids ...string) {
			t.Helper()
			if err := ix.Apply(c); err != nil {
				t.Fatal(err)
			}
			if err := r.p.Refence(t.Context(), ids); err != nil {
				t.Fatal(err)
			}
		}
		change(geofence.Change{Put: []*geofence.Fence{circle(t, "a", 5000, "").WithRevision(3)}}, "a")
		r.expect("van enter a", "van enter b", "van exit a") // the bus enters with its next fix
		change(geofence.Change{Delete: []string{"b"}}, "b")
		r.expect("van enter a", "van enter b", "van exit a", "van exit b")
		r.tape.add(at(9, "bus", t0+1, 5001), at(10, "van", t0+1, 1))
		r.expect("van enter a", "van enter b", "van exit a", "van exit b", "bus enter a")

		got := r.box.triggers()
		for i, reason := range map[int]string{2: "fence_changed", 3: "fence_deleted"} {
			if !strings.Contains(string(got[i].Body), `"reason":"`+reason+`"`) {
				t.Errorf("body of %s: %s", words(got[i:i+1]), got[i].Body)
			}
		}
		var last string
		for _, tr := range got[:4] {
			if tr.Sequence <= last {
				t.Errorf("sequence %s after %s", tr.Sequence, last)
			}
			last = tr.Sequence
		}
		r.kill()
	})
}

// G9 over a crash: what the change made happen is not settled when the
// process dies; or the change comes while nothing runs.
func TestG9_FenceChangeIsNotLostInACrash(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ix := index(t, circle(t, "a", 0, `,"zone":7`).WithRevision(1))
			r := newRig(t, ix, at(7, "van", t0, 0), at(8, "van", t0+1000, 1))
			kept := versions{"a": ix.Snapshot().Fence("a")}
			r.cfg.Versions = kept
			r.cfg.FlushAfter = time.Second
			r.start()
			r.expect("van enter a")
			time.Sleep(3 * time.Second)
			r.box.hold = true
			if stopped {
				r.kill()
			}
			if err := ix.Apply(geofence.Change{Delete: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			if !stopped {
				if err := r.p.Refence(t.Context(), []string{"a"}); err != nil {
					t.Fatal(err)
				}
				r.kill()
			}
			for range 2 { // and dies again before it is settled
				r.start()
				r.kill()
			}
			r.box.hold = false
			r.start()
			r.tape.add(at(9, "van", t0+2000, 2)) // from a deleted fence nothing comes
			time.Sleep(3 * time.Second)
			got := r.box.triggers()[1:]
			for _, tr := range got {
				if tr.Kind != geofence.Exit || tr.ID != got[0].ID || tr.Sequence != got[0].Sequence ||
					tr.Sequence <= router.Sequence(7, 0) || !strings.Contains(string(tr.Body), `"zone":7`) {
					t.Errorf("stopped %v: %s %s: %s", stopped, tr.ID, tr.Sequence, tr.Body)
				}
			}
			if len(got) < 3 {
				t.Errorf("stopped %v: the exit came %d times", stopped, len(got))
			}
			r.kill()
			before := len(r.box.triggers())
			r.start()
			r.expect(words(r.box.triggers()[:before])...)
			r.kill()
		})
	}
}

func TestFenceChangeWhileStoppedMeetsTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ix := index(t, circle(t, "a", 0, "").WithRevision(1))
		r := newRig(t, ix, at(7, "van", t0, 5000), at(8, "bus", t0, 0))
		r.start()
		r.expect("bus enter a")
		time.Sleep(2 * time.Second) // the van's presence is not saved, the offset is behind it
		r.kill()
		if saved := r.v.get(); saved.Offset != 9 || saved.ReplayFrom != 7 {
			t.Fatalf("saved %+v", saved)
		}
		if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{circle(t, "b", 5000, "").WithRevision(2)}}); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.expect("bus enter a", "van enter b") // below the offset, and new all the same
		r.kill()
	})
}

func TestRefenceMarksTheDevicesInsideForSaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ix := index(t, circle(t, "a", 0, "").WithRevision(1))
		r := newRig(t, ix, at(7, "van", t0, 0))
		r.start()
		time.Sleep(time.Second)
		before := r.v.get().Presences["van"]
		if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{circle(t, "a", 1, "").WithRevision(2)}}); err != nil {
			t.Fatal(err)
		}
		if err := r.p.Refence(t.Context(), []string{"a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		if after := r.v.get().Presences["van"]; string(after) == string(before) {
			t.Error("the saved presence still names the old version")
		}
		if saved := r.v.get(); saved.ReplayFrom != 8 {
			t.Errorf("replay_from %d, want 8", saved.ReplayFrom)
		}
		r.expect("van enter a")
		r.kill()
	})
}

// edits are fence changes between the segments of a log.
type edits struct {
	ix       *geofence.Index
	kept     versions
	revision uint64
	segments [][]router.Message
	changes  []geofence.Change // changes[i] comes after segments[i]
	next     int               // segments on the tape
	edited   int               // changes made
	tape     *tape
}

func newEdits(t *testing.T, rng *rand.Rand) *edits {
	e := &edits{kept: versions{}, tape: newTape()}
	put := func(name string) *geofence.Fence {
		e.revision++
		f := circle(t, name, float64(rng.IntN(5)-2)*1000, "").WithRevision(e.revision)
		return f
	}
	e.ix = index(t, put("a"), put("b"))
	for f := range e.ix.Snapshot().All() {
		e.kept[f.ID] = f
	}
	log := journey(rng)
	for len(log) > 0 {
		n := min(len(log), 5+rng.IntN(20))
		e.segments = append(e.segments, log[:n])
		log = log[n:]
		var c geofence.Change
		name := []string{"a", "b", "c"}[rng.IntN(3)]
		if rng.IntN(3) == 0 {
			c.Delete = append(c.Delete, name)
		} else {
			c.Put = append(c.Put, put(name))
		}
		e.changes = append(e.changes, c)
	}
	return e
}

// drive puts the log and the edits before a running partition, and says when
// all is done. An edit waits until everything before it is saved: what an edit
// does to fixes that were not saved at a kill, the promise leaves open.
func (e *edits) drive(ctx context.Context, p *router.Partition) (finished bool) {
	for {
		if e.next == e.edited {
			if e.next == len(e.segments) {
				return e.await(ctx, p)
			}
			e.tape.add(e.segments[e.next]...)
			e.next++
			continue
		}
		if !e.await(ctx, p) {
			return false
		}
		c := e.changes[e.edited]
		ids := slices.Clone(c.Delete)
		for _, f := range c.Put {
			ids = append(ids, f.ID)
			e.kept[f.ID] = f
		}
		if err := e.ix.Apply(c); err != nil {
			panic(err)
		}
		e.edited++
		if p.Refence(ctx, ids) != nil {
			return false
		}
	}
}

// await waits until all that is on the tape is judged, settled and saved.
func (e *edits) await(ctx context.Context, p *router.Partition) bool {
	end := e.tape.last() + 1
	for quiet := 0; quiet < 3; quiet++ {
		if st := p.Status(); st.Committed < end || st.Unsaved > 0 || st.Unsettled > 0 {
			quiet = 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(500 * time.Millisecond):
		}
	}
	return true
}

// run lets a partition live until it dies or has seen everything.
func (e *edits) run(t *testing.T, rng *rand.Rand, d *downstream, v *vault, cfg geofence.Config, fuse int64) (finished bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &life{kill: cancel}
	l.fuse.Store(fuse)
	w := newWire(d, l, rng)
	p := router.NewPartition(router.PartitionConfig{
		Namespace: "acme", Source: source{e.tape, l, 0}, Fences: e.ix, Versions: e.kept, Tracker: cfg,
		Store:      &mortal{owner: owner{v: v}, life: l, rng: rand.New(rand.NewPCG(rng.Uint64(), 2)), reliable: true},
		Consumers:  consumers(router.Consumer{Name: "all", Outlet: w}),
		FlushAfter: 400 * time.Millisecond,
	})
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	finished = e.drive(ctx, p)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.wg.Wait()
	return finished
}

// The promise of TestR6_KilledAnywhereGivesTheSameTriggers, with fences that
// change on the way: an edit's own transitions are repeated or go on where
// the process died, and nothing else changes.
func TestG9_KilledAroundFenceChangesGivesTheSameTriggers(t *testing.T) {
	t.Parallel()
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	kills := 0
	for n := range runs {
		synctest.Test(t, func(t *testing.T) {
			cfg := crashConfig(fakeSeed(n + 1_000_000))
			cfg.Reorder = 0 // what waits in the buffer is never saved, and would be waited for
			calm, torn, v := newDownstream(), newDownstream(), newVault()
			if !newEdits(t, fakeSeed(n)).run(t, fakeSeed(n), calm, newVault(), cfg, -1) {
				t.Fatal("the undisturbed run did not finish")
			}
			rng := fakeSeed(n + 2_000_000)
			e := newEdits(t, fakeSeed(n))
			for !e.run(t, rng, torn, v, cfg, 1+rng.Int64N(80)) {
				kills++
				if rng.IntN(20) == 0 {
					e.run(t, rng, torn, v, cfg, -1)
					break
				}
			}
			compareRuns(t, n, torn, calm)
		})
		if t.Failed() {
			t.Fatalf("failed in run %d", n)
		}
	}
	t.Logf("%d runs, %d kills", runs, kills)
}

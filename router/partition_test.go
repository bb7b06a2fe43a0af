package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// rig is a partition over doubles, in a bubble.
type rig struct {
	t    *testing.T
	cfg  router.PartitionConfig
	p    *router.Partition
	tape *tape
	v    *vault
	box  *inbox

	stop context.CancelFunc
	done chan error
}

func newRig(t *testing.T, ix *geofence.Index, messages ...router.Message) *rig {
	t.Helper()
	r := &rig{t: t, tape: newTape(messages...), v: newVault(), box: &inbox{}}
	r.cfg = router.PartitionConfig{
		Partition: 3, Namespace: "acme", Source: r.tape, Store: &owner{v: r.v}, Fences: ix,
		Consumers: consumers(router.Consumer{Name: "box", Outlet: r.box}),
	}
	return r
}

// start runs a new partition over what there is.
func (r *rig) start() {
	r.p = router.NewPartition(r.cfg)
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop = cancel
	r.done = make(chan error, 1)
	go func() { r.done <- r.p.Run(ctx) }()
	synctest.Wait()
}

// kill ends the partition without a Close.
func (r *rig) kill() error {
	r.stop()
	return <-r.done
}

func (r *rig) expect(want ...string) {
	r.t.Helper()
	synctest.Wait()
	if got := words(r.box.triggers()); !slices.Equal(got, want) {
		r.t.Errorf("triggers %q, want %q", got, want)
	}
}

const t0 = int64(1_700_000_000_000)

func TestPartitionTurnsTransitionsIntoTriggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a", "b")...),
			at(5, "fleet.van", t0, 5000), at(9, "fleet.van", t0+1000, 100), at(12, "fleet.van", t0+2000, 5000))
		r.start()
		r.expect("fleet.van enter a", "fleet.van exit a")
		got := r.box.triggers()
		for i, want := range []string{router.Sequence(9, 0), router.Sequence(12, 0)} {
			tr := got[i]
			if tr.Sequence != want || tr.Partition != 3 || tr.Slot != router.SlotOf("fleet.van") || tr.Read.IsZero() {
				t.Errorf("trigger %+v, want sequence %s", tr, want)
			}
			if !strings.Contains(string(tr.Body), `"id":"`+tr.ID+`"`) || !strings.Contains(string(tr.Body), `"source":"/tripline/acme"`) {
				t.Errorf("body %s", tr.Body)
			}
		}
		if err := r.kill(); err != nil {
			t.Error(err)
		}
	})
}

// G6, G8: a restart makes no second enter, loses no exit, and fires a dwell
// once.
func TestG6_RestartKeepsThePresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 5000), at(2, "van", t0+1000, 0))
		r.cfg.Tracker.Dwell = []time.Duration{time.Minute}
		r.start()
		r.expect("van enter a")
		time.Sleep(time.Second)
		r.kill()

		r.start()
		r.expect("van enter a") // not again
		r.tape.add(at(3, "van", t0+30_000, 100), tick(4, t0+61_000))
		r.expect("van enter a", "van dwell a")
		time.Sleep(time.Second)
		r.kill()

		r.tape.add(at(5, "van", t0+90_000, 5000)) // it left while nobody looked
		r.start()
		r.expect("van enter a", "van dwell a", "van exit a")
		r.kill()
	})
}

func TestG8_DwellPendingAtRestartFiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		r.cfg.Tracker.Dwell = []time.Duration{time.Minute}
		r.start()
		r.expect("van enter a")
		time.Sleep(time.Second)
		r.kill()
		r.tape.add(tick(2, t0+60_000))
		r.box.hold = true
		for range 2 { // the first time nobody settles it
			r.start()
			r.kill()
			r.start()
		}
		got := r.box.triggers()[1:]
		for _, tr := range got {
			if tr.ID != got[0].ID || tr.Sequence != got[0].Sequence {
				t.Errorf("the dwell came as %s %s and as %s %s", got[0].ID, got[0].Sequence, tr.ID, tr.Sequence)
			}
		}
		r.box.hold = false
		r.kill()
		r.start()
		time.Sleep(time.Second)
		r.kill()
		before := len(r.box.triggers())
		r.start()
		if after := len(r.box.triggers()); after != before {
			t.Errorf("the settled dwell came %d times more", after-before)
		}
		r.kill()
	})
}

func TestPartitionWaitingInOfferStillCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...))
		blocked := &inbox{block: make(chan struct{})}
		r.cfg.Consumers = consumers(
			router.Consumer{Name: "box", Match: compile(t, router.MatchConfig{Devices: []string{"van"}}), Outlet: r.box},
			router.Consumer{Name: "blocked", Match: compile(t, router.MatchConfig{Devices: []string{"bus"}}), Outlet: blocked})
		r.box.hold = true
		r.start()
		r.tape.add(at(1, "van", t0, 0), at(2, "bus", t0, 0), at(3, "van", t0+1, 5000))
		r.expect("van enter a")
		time.Sleep(time.Second)
		if saved := r.v.get(); saved.Offset > 1 || len(saved.Presences) != 0 {
			t.Fatalf("saved before anything was settled: %+v", saved)
		}
		r.box.settle(0) // the loop still waits for the bus's consumer
		time.Sleep(time.Second)
		saved := r.v.get()
		if saved.Offset != 2 || saved.Presences["van"] == nil {
			t.Errorf("settled while the loop waits: offset %d, presence %q; want 2 and one", saved.Offset, saved.Presences["van"])
		}
		if st := r.p.Status(); st.Unsettled != 1 || st.Lag < time.Second || st.Committed != 2 {
			t.Errorf("status %+v", st)
		}
		close(blocked.block)
		r.expect("van enter a", "van exit a")
		r.box.settle(1)
		time.Sleep(2 * time.Second)
		if saved := r.v.get(); saved.Offset != 4 {
			t.Errorf("offset %d at the end, want 4", saved.Offset)
		}
		r.kill()
	})
}

func TestOffsetStopsAtTheFirstUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...),
			at(10, "x", t0, 0), at(20, "y", t0, 0), at(30, "x", t0+1, 5000), at(40, "y", t0+1, 5000))
		r.box.hold = true
		r.start()
		for _, step := range []struct {
			settle int
			offset uint64
			saved  []string
		}{
			{1, 10, []string{"y"}},            // y enter, behind x enter
			{2, 10, []string{"y"}},            // x exit, behind x enter: not to be saved
			{0, 40, []string{"x", "y"}},       // x enter: x's later presence goes with it
			{3, 41, []string{"x", "y", "y2"}}, // y exit
		} {
			before := r.v.get()
			r.box.settle(step.settle)
			time.Sleep(2 * time.Second)
			saved := r.v.get()
			if saved.Offset != step.offset {
				t.Errorf("after settling %d: offset %d, want %d", step.settle, saved.Offset, step.offset)
			}
			for _, name := range step.saved {
				if name == "y2" {
					if string(before.Presences["y"]) == string(saved.Presences["y"]) {
						t.Error("y's presence was not saved again after its exit")
					}
				} else if saved.Presences[name] == nil {
					t.Errorf("after settling %d: %s is not saved", step.settle, name)
				}
			}
			if step.settle == 2 && saved.Presences["x"] != nil {
				t.Error("x's presence was saved before its first trigger was settled")
			}
		}
		r.kill()
	})
}

func TestUnsavedPresencesAreFlushedWithinFlushAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 5000), at(2, "y", t0, 5000))
		r.start()
		time.Sleep(29 * time.Second)
		if saved := r.v.get(); len(saved.Presences) != 0 || saved.ReplayFrom != 1 {
			t.Errorf("after 29 s: %d presences, replay_from %d", len(saved.Presences), saved.ReplayFrom)
		}
		r.tape.add(at(3, "y", t0+1, 5001))
		time.Sleep(3 * time.Second)
		if saved := r.v.get(); len(saved.Presences) != 2 || saved.ReplayFrom != 4 || saved.Offset != 4 {
			t.Errorf("after 32 s: %d presences, replay_from %d, offset %d; want 2, 4, 4", len(saved.Presences), saved.ReplayFrom, saved.Offset)
		}
		if st := r.p.Status(); st.Unsaved != 0 || st.Devices != 2 {
			t.Errorf("status %+v", st)
		}
		r.kill()
	})
}

func TestCloseSavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 5000), at(2, "y", t0, 0))
		r.box.hold = true
		r.start()
		r.expect("y enter a")
		if err := r.kill(); err != nil {
			t.Fatal(err)
		}
		r.box.settle(0) // the outlet drains after the stop
		if err := r.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		saved := r.v.get()
		if len(saved.Presences) != 2 || saved.Offset != 3 || saved.ReplayFrom != 3 {
			t.Errorf("after Close: %d presences, offset %d, replay_from %d", len(saved.Presences), saved.Offset, saved.ReplayFrom)
		}
		r.start()
		r.expect("y enter a")
		if reads := r.tape.begun(); reads[len(reads)-1] != 3 {
			t.Errorf("the next start reads from %v at last, want 3", reads)
		}
		r.kill()
	})
}

func TestCloseSavesNoPresenceBeforeItsTriggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 5000), at(2, "y", t0, 0), at(3, "y", t0+1, 1))
		r.box.hold = true
		r.start()
		r.kill()
		if err := r.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		saved := r.v.get()
		if saved.Presences["y"] != nil || saved.Presences["x"] == nil || saved.Offset != 2 || saved.ReplayFrom != 2 {
			t.Errorf("after Close: %+v", saved)
		}
	})
}

func TestFencedPartitionStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 5000))
		r.start()
		thief := &owner{v: r.v}
		if _, err := thief.Claim(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		r.tape.add(at(2, "x", t0+1, 0))
		if err := <-r.done; !errors.Is(err, router.ErrFenced) {
			t.Errorf("Run returned %v, want ErrFenced", err)
		}
		if err := r.p.Close(t.Context()); !errors.Is(err, router.ErrFenced) {
			t.Errorf("Close returned %v, want ErrFenced", err)
		}
		if len(r.v.get().Presences) != 0 {
			t.Error("the old owner stored something")
		}
		r.stop()
	})
}

func TestCommitWithUnknownFateIsRepeated(t *testing.T) {
	for name, f := range map[string]fate{"answer lost": answerLost, "not stored": notStored, "half stored": halfStored} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 0))
				var failed atomic.Int64
				left := 3
				r.cfg.Store = &owner{v: r.v, fate: func() fate {
					if left == 0 {
						return stored
					}
					left--
					return f
				}}
				r.cfg.Hooks.Committed = func(_ time.Duration, _ int, err error) {
					if err != nil {
						failed.Add(1)
					}
				}
				r.start()
				time.Sleep(5 * time.Second)
				if saved := r.v.get(); saved.Offset != 2 || saved.Presences["x"] == nil || failed.Load() != 3 {
					t.Errorf("offset %d, presences %v, %d failures", saved.Offset, saved.Presences, failed.Load())
				}
				r.kill()
			})
		})
	}
}

func TestSubmitIsAnsweredAfterJudging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(m router.Message, reply string) router.Message { m.Reply = reply; return m }
		far := at(6, "x", t0+time.Hour.Milliseconds(), 0)
		far.Stored = t0
		vague := at(7, "x", t0+5, 0)
		vague.Fix.Has, vague.Fix.Accuracy = geofence.HasAccuracy, 17_000
		r := newRig(t, index(t, circles(t, "a")...),
			ask(at(1, "x", t0, 5000), "first"), ask(at(2, "x", t0+1, 0), "enter"), ask(at(3, "x", t0+1, 5), "again"),
			ask(at(4, "x", t0-1, 0), "old"), ask(far, "far"), ask(vague, "vague"), at(8, "x", t0+6, 0))
		r.cfg.Tracker.MaxAccuracyM = 100
		r.start()
		for reply, want := range map[string]router.Answer{
			"first": {OK: true, Seq: 1},
			"enter": {OK: true, Seq: 2, Transitions: 1},
			"again": {Seq: 3, Reason: "duplicate"},
			"old":   {Seq: 4, Reason: "late"},
			"far":   {Seq: 6, Reason: "future"},
			"vague": {Seq: 7, Reason: "accuracy"},
		} {
			got, ok := r.tape.answer(reply)
			if !want.OK && got.Error == "" {
				t.Errorf("%s: no text in %+v", reply, got)
			}
			got.Error = ""
			if !ok || got != want {
				t.Errorf("%s: answered %+v (%v), want %+v", reply, got, ok, want)
			}
		}
		r.kill()
	})
}

// R14, in part: consumers are swapped under a running partition.
func TestR14_ConsumersAreSwappedBetweenMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 0))
		r.start()
		r.expect("x enter a")
		other := &inbox{}
		r.cfg.Consumers.Store(&[]router.Consumer{{Name: "other", Outlet: other}})
		if err := r.p.Do(t.Context(), func(*geofence.Tracker) {}); err != nil {
			t.Fatal(err)
		}
		r.tape.add(at(2, "x", t0+1, 5000))
		r.expect("x enter a")
		if got := words(other.triggers()); !slices.Equal(got, []string{"x exit a"}) {
			t.Errorf("the new consumer got %q", got)
		}
		r.kill()
	})
}

func TestOneBodyForAllConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "x", t0, 0))
		second := &inbox{}
		r.cfg.Consumers = consumers(
			router.Consumer{Name: "box", Match: compile(t, router.MatchConfig{Priority: router.High}), Outlet: r.box},
			router.Consumer{Name: "second", Match: compile(t, router.MatchConfig{Priority: router.Low}), Outlet: second},
			router.Consumer{Name: "none", Match: compile(t, router.MatchConfig{Fences: []string{"z"}}), Outlet: nil})
		r.start()
		one, two := r.box.triggers(), second.triggers()
		if len(one) != 1 || len(two) != 1 {
			t.Fatalf("%d and %d triggers", len(one), len(two))
		}
		if &one[0].Body[0] != &two[0].Body[0] {
			t.Error("the body was encoded twice")
		}
		if one[0].Priority != router.High || two[0].Priority != router.Low || one[0].ID != two[0].ID {
			t.Errorf("triggers %+v and %+v", one[0], two[0])
		}
		r.kill()
	})
}

func TestManyDevicesAtOnePosition(t *testing.T) {
	const devices = 9001
	synctest.Test(t, func(t *testing.T) {
		var log []router.Message
		for i := range devices {
			log = append(log, at(uint64(i+1), fmt.Sprint("d", i), t0, float64(i%2)*5000))
		}
		r := newRig(t, index(t, circles(t, "a")...), log...)
		r.tape.most = 500
		r.cfg.Tracker.Dwell = []time.Duration{time.Minute}
		steps, largest := 0, 0
		r.cfg.Hooks.Committed = func(_ time.Duration, presences int, _ error) {
			steps++
			largest = max(largest, presences)
		}
		r.start()
		r.tape.add(tick(devices+1, t0+60_000)) // every other one dwells at once
		synctest.Wait()
		if got := len(r.box.triggers()); got != devices+1 {
			t.Errorf("%d triggers, want %d enters and as many dwells", got, (devices+1)/2)
		}
		if err := r.kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		saved := r.v.get()
		if len(saved.Presences) != devices || saved.Offset != devices+2 || saved.ReplayFrom != devices+2 {
			t.Errorf("%d presences, offset %d, replay_from %d", len(saved.Presences), saved.Offset, saved.ReplayFrom)
		}
		if largest > 4000 || steps < 3 {
			t.Errorf("%d commits, the largest with %d presences", steps, largest)
		}
	})
}

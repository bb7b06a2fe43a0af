package router_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/router"
)

// The progress of a partition: what is saved when, over doubles.

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

// A store that doesn't answer while the service starts is no reason to end
// it: it would not be one a second later.
func TestClaimIsTriedAgainUntilTheStoreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		store := &owner{v: r.v}
		store.away.Store(5)
		failures := 0
		r.cfg.Store, r.cfg.Hooks.ClaimFailed = store, func(err error) {
			failures++
			if !errors.Is(err, errFate) {
				t.Errorf("told of %v, want %v", err, errFate)
			}
		}
		r.start()
		r.expect()
		if r.p.Status().Started {
			t.Error("started without a claim")
		}
		time.Sleep(5 * time.Second)
		r.expect("van enter a")
		if !r.p.Status().Started || failures != 5 {
			t.Errorf("started: %t after %d failures; want true after 5", r.p.Status().Started, failures)
		}
		r.kill()
	})
}

func TestClaimIsGivenUpWhenTheServiceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...))
		store := &owner{v: r.v}
		store.away.Store(1 << 30)
		r.cfg.Store = store
		r.start()
		time.Sleep(time.Minute)
		if err := r.kill(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := r.p.Close(t.Context()); err != nil || r.v.steps != 0 {
			t.Errorf("Close: %v after %d commits; want none", err, r.v.steps)
		}
	})
}

// silent is a Store whose claim ends only with its context.
type silent struct{ *owner }

func (silent) Claim(ctx context.Context, _ int) (router.Saved, error) {
	<-ctx.Done()
	return router.Saved{}, ctx.Err()
}

// A stop while the service starts is no fault of the store's.
func TestAClaimThatAStopEndsIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...))
		r.cfg.Store = silent{&owner{v: r.v}}
		r.cfg.Hooks.ClaimFailed = func(err error) { t.Errorf("told of %v", err) }
		r.start()
		time.Sleep(time.Minute)
		if err := r.kill(); err != nil {
			t.Errorf("Run: %v", err)
		}
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

func TestBufferedFixSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0), at(2, "bus", t0+100, 5000))
		r.cfg.Tracker.Reorder = 10 * time.Second
		r.cfg.FlushAfter = time.Second
		r.start()
		time.Sleep(10 * time.Second) // the partition's clock stands still
		if saved := r.v.get(); saved.ReplayFrom != 1 || len(saved.Presences) != 0 {
			t.Errorf("nothing is judged, and saved is %+v", saved)
		}
		r.kill()
		r.start()
		r.tape.add(tick(3, t0+11_000))
		r.expect("van enter a")
		time.Sleep(5 * time.Second)
		if saved := r.v.get(); saved.ReplayFrom != 4 || len(saved.Presences) != 2 {
			t.Errorf("all is judged, and saved is %+v", saved)
		}
		r.kill()
	})
}

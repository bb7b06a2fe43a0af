package router_test

import (
	"context"
	"slices"
	"strings"
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

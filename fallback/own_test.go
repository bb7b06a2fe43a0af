package fallback_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/queuetest"
	"github.com/tripline/tripline/router"
)

// What waits for a partition's table goes live only if nothing is parked.
func TestTriggersWaitUntilTheirPartitionIsOwned(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Partitions = fallback.None
		r.mem.Park(trigger("a", 0), fallback.ReasonShutdown, func(uint64, error) {})
		r.start()
		r.offer(trigger("a", 1))
		r.offer(trigger("b", 0))
		time.Sleep(time.Minute)
		if n := r.consumer.count(); n != 0 {
			t.Fatalf("%d calls before the partition is owned", n)
		}
		for p := range 4 {
			if err := r.outlet.Own(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		r.drained(10 * time.Second)
		got := r.consumer.ids()
		if i, j := slices.Index(got, "a/0"), slices.Index(got, "a/1"); len(got) != 3 || i > j {
			t.Errorf("got %q", got)
		}
		if r.diverts()[fallback.ReasonOrder] != 1 || len(r.diverts()) != 1 {
			t.Errorf("diverted %v: only a/1 had to wait its turn", r.diverts())
		}
	})
}

func TestOwnRetriesUntilTheQueueAnswers(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		faulty := queuetest.NewFaulty(r.mem)
		faulty.FailAlways(queuetest.Table, queuetest.NotApplied)
		r.queue = faulty
		r.start()
		r.offer(trigger("a", 0))
		time.Sleep(time.Minute)
		if n := r.consumer.count(); n > 0 || r.errorsTold() < 50 {
			t.Errorf("%d calls, %d errors told", n, r.errorsTold())
		}
		faulty.FailAlways(queuetest.Table, "")
		time.Sleep(time.Second)
		r.checkAll()
	})
}

// A partition is handed over while the consumer is sick: what waited in
// memory is parked, and the next owner goes on from there.
func TestDisownParksAndTheNextOwnerGoesOn(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Concurrency = 1
		r.start()
		r.consumer.set(always(40*time.Millisecond, nil))
		for i := range 20 {
			r.offer(trigger("a", i))
		}
		p := trigger("a", 0).Partition
		if err := r.outlet.Disown(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		before := len(r.consumer.ids())
		time.Sleep(time.Minute)
		if now := len(r.consumer.ids()); now != before || now == 20 {
			t.Errorf("%d delivered, %d after it was given up", before, now-before)
		}
		if err := r.outlet.Own(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		r.drained(time.Minute)
		r.checkAll()
	})
}

func TestDisownWithAnEndedContextForgetsAtOnce(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(time.Hour, nil))
		for i := range 5 {
			r.offer(trigger("a", i))
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.outlet.Disown(ctx, trigger("a", 0).Partition); err == nil {
			t.Error("it says that everything is parked")
		}
		time.Sleep(time.Second) // the call ends after its partition
		if s := r.outlet.Status(); s.InFlight != 0 || s.Backlog != 0 || s.Lane != 0 || s.SlotsParking != 0 {
			t.Errorf("left: %+v", s)
		}
		// One that was offered a moment too late is forgotten as well: parked,
		// it would come before the five.
		r.offer(trigger("a", 5))
		if left := r.unsettled(); len(left) != 6 {
			t.Errorf("not settled: %q, want all", left)
		}
		if err := r.outlet.Own(t.Context(), trigger("a", 0).Partition); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := r.consumer.ids(); len(got) > 1 {
			t.Errorf("called after it was given up: %q", got)
		}
	})
}

// A backlog that was there at the start is replayed with care: the outage may
// not be over.
func TestBacklogFromBeforeTheStartIsReplayedThroughTheRamp(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		for i := range 1000 {
			r.mem.Park(trigger(fmt.Sprint("dev", i%100), i), fallback.ReasonShutdown, func(uint64, error) {})
		}
		r.consumer.set(always(50*time.Millisecond, nil))
		r.start()
		time.Sleep(240 * time.Millisecond)
		if peak := r.consumer.peakInFlight(); peak > 2 {
			t.Errorf("%d calls in flight at once", peak)
		}
		if s := r.outlet.Status(); s.ReplayRate == 0 || s.ETA == 0 || s.Breaker.RampWindow == 0 {
			t.Errorf("no progress shown: %+v", s)
		}
		r.drained(2 * time.Minute)
		if n := len(r.consumer.ids()); n != 1000 {
			t.Errorf("%d replayed", n)
		}
		r.checkOrder()
	})
}

// While the ramp is in force the lane is short, and both the lane and the
// backlog get their share of the calls.
func TestRampSharesTheCallsBetweenLiveAndBacklog(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		for i := range 400 {
			r.mem.Park(trigger(fmt.Sprint("old", i%40), i), fallback.ReasonShutdown, func(uint64, error) {})
		}
		r.consumer.set(always(20*time.Millisecond, nil))
		r.start()
		// More live triggers than a window of 2 can take, of devices whose
		// slots have no backlog.
		slots := map[fallback.Slot]bool{}
		for i := range 40 {
			tr := trigger(fmt.Sprint("old", i), 0)
			slots[fallback.Slot{Partition: tr.Partition, Index: tr.Slot}] = true
		}
		for i, n := 0, 0; n < 60; i++ {
			tr := trigger(fmt.Sprint("new", i), 0)
			if slots[fallback.Slot{Partition: tr.Partition, Index: tr.Slot}] {
				continue
			}
			n++
			r.offer(tr)
			time.Sleep(4 * time.Millisecond)
		}
		if r.diverts()[fallback.ReasonRamp] == 0 {
			t.Errorf("diverted: %v", r.diverts())
		}
		liveCalls, oldCalls, row := 0, 0, 0
		for _, c := range r.consumer.list() {
			if c.id[:3] == "new" {
				liveCalls++
				row++
			} else {
				oldCalls++
				row = 0
			}
			if row > 10 {
				t.Errorf("%d live calls in a row while the backlog waited", row)
			}
		}
		if liveCalls < oldCalls || oldCalls == 0 {
			t.Errorf("%d live calls, %d of the backlog", liveCalls, oldCalls)
		}
		r.drained(time.Minute)
		if n := len(r.consumer.ids()); n != 460 {
			t.Errorf("%d delivered", n)
		}
	})
}

// One consumer hangs; the other doesn't notice.
func TestR1_HangingSinkCostsItsOwnOutletOnly(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		hangs := sinkFunc(func(ctx context.Context, _ router.Trigger) error { <-ctx.Done(); return ctx.Err() })
		other := fallback.New(hangs, breaker.New(breaker.Config{}), fallback.NewMemQueue(0, 0))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx) }()
		synctest.Wait()
		settled := 0
		for i := range 2000 {
			tr := trigger(fmt.Sprint("dev", i%50), i)
			began := time.Now()
			other.Offer(t.Context(), tr, func() { settled++ })
			r.offer(tr)
			if took := time.Since(began); took > 0 {
				t.Fatalf("the partition waited %v", took)
			}
			time.Sleep(2 * time.Millisecond)
		}
		r.drained(10 * time.Millisecond)
		r.checkAll()
		if s := other.Status(); s.Delivered != 0 || s.Backlog == 0 {
			t.Errorf("the hanging one: %+v", s)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if settled != 2000 {
			t.Errorf("%d of 2000 settled", settled)
		}
	})
}

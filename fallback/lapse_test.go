package fallback_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
)

// The window is over and the gate says no: nothing is called, for as long as
// that takes. When it says yes the probes begin within moments.
func TestGateHoldsTheProbesBack(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		var open atomic.Bool
		var asked atomic.Int64
		r.cfg.Gate = func() bool { asked.Add(1); return open.Load() }
		r.start()
		r.consumer.set(always(5*time.Millisecond, errSick))
		r.traffic(8, 8, 300*time.Millisecond)
		r.consumer.set(nil)
		time.Sleep(2 * time.Second) // the window is over
		if s := r.outlet.Status(); s.Breaker.State != breaker.HalfOpen {
			t.Fatalf("not half-open: %+v", s)
		}
		calls := r.consumer.count()
		r.traffic(8, 8, 300*time.Millisecond)
		time.Sleep(time.Minute)
		if now := r.consumer.count(); now != calls {
			t.Errorf("%d calls behind a shut gate", now-calls)
		}
		if n := asked.Load(); n > 25*65 {
			t.Errorf("the gate was asked %d times in about a minute", n)
		}
		open.Store(true)
		time.Sleep(60 * time.Millisecond)
		if now := r.consumer.count(); now == calls {
			t.Error("no probe after the gate has opened")
		}
		r.drained(time.Minute)
		r.checkAll()
		if r.closes() != 1 {
			t.Errorf("states: %v", r.states())
		}
	})
}

// The gate is also asked where only live triggers can be probes.
func TestGateHoldsBackALiveProbe(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		var open atomic.Bool
		r.cfg.Gate = open.Load
		r.start()
		r.outlet.ForceOpen(time.Second)
		time.Sleep(1100 * time.Millisecond)
		r.offer(trigger("a", 0))
		time.Sleep(time.Second)
		if n := r.consumer.count(); n != 0 {
			t.Errorf("%d calls behind a shut gate", n)
		}
		open.Store(true)
		r.drained(time.Second)
		r.checkAll()
	})
}

// A hint from elsewhere ends the open window early, never before its base.
func TestHintFromElsewhere(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.breaker.Base = 5 * time.Second
		r.start()
		r.consumer.set(always(5*time.Millisecond, errSick))
		r.traffic(8, 5, 300*time.Millisecond)
		time.Sleep(6 * time.Second) // reopened by now: twice the base
		r.consumer.set(nil)
		if s := r.outlet.Status(); s.Breaker.State != breaker.Open || s.Breaker.Window != 10*time.Second {
			t.Fatalf("not on the second rung: %+v", s.Breaker)
		}
		r.outlet.Hint()
		r.drained(5 * time.Second)
		r.checkAll()
	})
}

// The lease on a partition ends while its triggers wait: not one more goes
// out, whoever is about to call. The next owner starts from nothing.
func TestNothingIsCalledOfAPartitionThatIsNotHeld(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		var held atomic.Bool
		held.Store(true)
		r.cfg.Concurrency = 2
		r.cfg.Holds = func(int) bool { return held.Load() }
		r.start()
		r.consumer.set(always(40*time.Millisecond, nil))
		for i := range 20 {
			r.offer(trigger("a", i))
			r.offer(trigger("b", i))
		}
		time.Sleep(100 * time.Millisecond)
		held.Store(false)
		calls := r.consumer.count()
		time.Sleep(time.Minute)
		if now := r.consumer.count(); now != calls {
			t.Errorf("%d calls of partitions that are not held", now-calls)
		}
		a, b := trigger("a", 0).Partition, trigger("b", 0).Partition
		r.outlet.Abandon(a)
		r.outlet.Abandon(b)
		if s := r.outlet.Status(); s.Lane+s.Backlog+s.InFlight+s.Waiting != 0 {
			t.Errorf("left: %+v", s)
		}
		if err := r.outlet.Redrive(t.Context(), fallback.DeadLetter{Trigger: trigger("a", 0)}); !errors.Is(err, fallback.ErrNotHeld) {
			t.Errorf("redrive: %v", err)
		}

		held.Store(true)
		if err := r.outlet.Own(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		r.consumer.set(nil)
		r.offer(trigger("a", 30))
		r.drained(time.Second)
		if ids := r.consumer.ids(); ids[len(ids)-1] != "a/30" || len(ids) != calls+1 {
			t.Errorf("%d calls before, then %q", calls, ids)
		}
	})
}

func TestAbandonForgetsWhatIsParkedAndWaits(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(5*time.Millisecond, errSick))
		r.traffic(8, 40, 20*time.Millisecond)
		for p := range 4 {
			r.outlet.Abandon(p)
		}
		synctest.Wait()
		if s := r.outlet.Status(); s.Lane+s.Backlog+s.Waiting+s.SlotsParking != 0 {
			t.Errorf("left: %+v", s)
		}
		if u := r.mem.Usage(); u.Items == 0 {
			t.Error("what was parked is gone: it is the next owner's")
		}
		r.consumer.set(nil)
		for p := range 4 {
			if err := r.outlet.Own(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		r.drained(time.Minute)
		r.checkOrder()
	})
}

func TestDrainWaitsForWhatIsInMemory(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Concurrency = 1
		r.start()
		r.consumer.set(always(40*time.Millisecond, nil))
		for i := range 10 {
			r.offer(trigger("a", i))
		}
		p := trigger("a", 0).Partition
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := r.outlet.Drain(short, p); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain of 400 ms within 100: %v", err)
		}
		if err := r.outlet.Drain(t.Context(), p); err != nil {
			t.Error(err)
		}
		if n := len(r.consumer.ids()); n != 10 {
			t.Errorf("%d delivered", n)
		}
		if err := r.outlet.Disown(t.Context(), p); err != nil {
			t.Error(err)
		}
		r.checkAll()
	})
}

package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

var errSick = errors.New("answered 500: sick")

func TestHealthyConsumerGetsEverythingLive(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.traffic(20, 500, 2*time.Millisecond)
		r.drained(time.Second)
		r.checkAll()
		if s := r.outlet.Status(); s.Delivered != 500 || s.Replayed != 0 || s.Owned != 16 {
			t.Errorf("status: %+v", s)
		}
		if len(r.diverts()) > 0 {
			t.Errorf("diverted: %v", r.diverts())
		}
	})
}

// The headline: a consumer is sick for 20 s, comes back, and that is one trip
// and one clean close, with every trigger delivered once and in order.
func TestR7_OutageEndsInOneCleanCloseAndAPacedReplay(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.traffic(50, 400, 5*time.Millisecond)
		r.consumer.set(always(900*time.Millisecond, nil))
		r.traffic(50, 4000, 5*time.Millisecond) // 20 s
		if s := r.outlet.Status(); s.Breaker.State == breaker.Closed || s.Backlog < 3000 {
			t.Errorf("after 20 s of sickness: %+v", s)
		}
		r.consumer.set(nil)
		healed := time.Now()
		r.consumer.resetPeak()
		for r.closes() == 0 {
			r.traffic(50, 1, 5*time.Millisecond)
			if time.Since(healed) > 40*time.Second {
				t.Fatalf("not closed: %+v", r.outlet.Status())
			}
		}
		if peak := r.consumer.peakInFlight(); peak > 2 {
			t.Errorf("%d calls in flight while half-open", peak)
		}
		r.consumer.resetPeak()
		r.traffic(50, 40, 5*time.Millisecond) // less than a tick of the ramp
		if peak := r.consumer.peakInFlight(); peak > 3 {
			t.Errorf("%d calls in flight right after the close", peak)
		}
		r.traffic(50, 1000, 5*time.Millisecond)
		r.drained(time.Minute)
		r.checkAll()
		if r.closes() != 1 {
			t.Errorf("states: %v", r.states())
		}
		if r.diverts()[fallback.ReasonOpen] == 0 || r.diverts()[fallback.ReasonProbeCap]+r.diverts()[fallback.ReasonOrder] == 0 {
			t.Errorf("diverted: %v", r.diverts())
		}
	})
}

// Nobody sends anything any more: the probes come out of the queue.
func TestQuietConsumerRecoversWithoutLiveTraffic(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(5*time.Millisecond, errSick))
		r.traffic(8, 8, 300*time.Millisecond)
		if s := r.outlet.Status(); s.Breaker.State == breaker.Closed {
			t.Fatalf("did not trip: %+v", s)
		}
		r.consumer.set(nil)
		r.drained(40 * time.Second)
		r.checkAll()
		if r.closes() != 1 {
			t.Errorf("states: %v", r.states())
		}
	})
}

// A health check that passes ends the open window early.
func TestHealthCheckEndsTheOpenWindowEarly(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		sick := true
		r.cfg.Health = healthFunc(func(context.Context) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if sick {
				return errSick
			}
			return nil
		})
		r.start()
		r.consumer.set(always(time.Second, nil))
		r.traffic(50, 4000, 5*time.Millisecond)
		r.mu.Lock()
		sick = false
		r.mu.Unlock()
		r.consumer.set(nil)
		healed := time.Now()
		for r.closes() == 0 {
			r.traffic(50, 1, 5*time.Millisecond)
			if time.Since(healed) > 4*time.Second {
				t.Fatalf("not closed 4 s after it healed: %v", r.states())
			}
		}
		r.drained(time.Minute)
		r.checkAll()
	})
}

type healthFunc func(context.Context) error

func (f healthFunc) Check(ctx context.Context) error { return f(ctx) }

func TestHealthCheckThatPanicsOrHangsIsAFailure(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		var checks atomic.Int64
		r.cfg.Health = healthFunc(func(ctx context.Context) error {
			if checks.Add(1)%2 == 0 {
				panic("no")
			}
			<-ctx.Done()
			return nil // too late
		})
		r.start()
		r.consumer.set(always(time.Second, nil))
		r.traffic(50, 2000, 5*time.Millisecond)
		for _, tr := range r.moves() {
			if tr.Reason == breaker.ReasonHint {
				t.Errorf("a hint was given: %v", tr.Text)
			}
		}
		if r.counted(&r.panics) == 0 || checks.Load() < 4 {
			t.Errorf("%d checks, %d panics told", checks.Load(), r.counted(&r.panics))
		}
		r.consumer.set(nil)
		r.drained(2 * time.Minute)
		r.checkAll()
	})
}

// While half-open the queue gives the probes: the highest priority first, a
// trigger that failed as a probe last; live triggers are parked unasked.
func TestProbesAreChosenByPriorityAndNeverTheSameOneAgain(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.breaker.Probes = 1
		r.start()
		r.outlet.ForceOpen(2 * time.Second)
		priorities := map[string]router.Priority{"low": router.Low, "normal": router.Normal, "high": router.High, "poison": router.High}
		for _, device := range []string{"low", "normal", "poison", "high"} {
			tr := trigger(device, 1)
			tr.Priority = priorities[device]
			r.offer(tr)
			time.Sleep(time.Millisecond) // parked in this order
		}
		r.consumer.set(func(_ int, t router.Trigger) (time.Duration, error) {
			if t.Device == "poison" {
				return time.Millisecond, errSick
			}
			return time.Millisecond, nil
		})
		time.Sleep(2500 * time.Millisecond)
		if got := r.consumer.count(); got != 1 || r.consumer.list()[0].id != "poison/1" {
			t.Fatalf("first probe: %v", r.consumer.list())
		}
		for i := range 3 { // live ones while half-open don't become probes
			r.offer(trigger("later", i))
		}
		time.Sleep(5 * time.Second)
		calls := r.consumer.list()
		if len(calls) < 6 || calls[1].id != "high/1" || calls[2].id != "normal/1" {
			t.Errorf("probes %v, want high/1 and normal/1 after the first", calls)
		}
		for _, c := range calls[1:6] {
			if c.id == "poison/1" {
				t.Errorf("the failed one is probed again before the others: %v", calls)
			}
		}
		if r.closes() != 1 {
			t.Errorf("states %v: the poison held it open", r.states())
		}
		r.consumer.set(nil)
		r.drained(time.Minute)
		r.checkAll()
	})
}

// A consumer whose backlog holds nothing but one poisoned trigger is probed
// with live ones again once that is dead.
func TestR3_PoisonBecomesADeadLetterAndOthersGoOn(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(func(_ int, t router.Trigger) (time.Duration, error) {
			if t.ID == "bad/0" {
				return 5 * time.Millisecond, errSick
			}
			return 5 * time.Millisecond, nil
		})
		r.offer(trigger("bad", 0))
		r.offer(trigger("bad", 1))
		for i := range 400 { // others, so that the breaker stays closed
			r.offer(trigger("good", i))
			time.Sleep(500 * time.Millisecond)
		}
		calls := r.consumer.callsOf("bad/0")
		if len(calls) != 8 {
			t.Fatalf("%d attempts, want 8", len(calls))
		}
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60} {
			if gap := calls[i+1].Sub(calls[i]); gap < want*time.Second || gap > want*time.Second+100*time.Millisecond {
				t.Errorf("attempt %d after %v, want %v s", i+2, gap, int(want))
			}
		}
		if r.deaths()[fallback.DeadMaxAttempts] != 1 {
			t.Errorf("dead: %v", r.deaths())
		}
		got := r.consumer.ids()
		if len(got) != 401 {
			t.Errorf("%d delivered, want 401", len(got))
		}
		if s := r.outlet.Status(); s.Breaker.State != breaker.Closed || len(r.states()) > 0 {
			t.Errorf("tripped: %v", r.states())
		}
		var letters []fallback.DeadLetter
		for d, err := range r.mem.Dead(t.Context(), fallback.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, d)
		}
		if len(letters) != 1 || letters[0].Attempts != 8 || letters[0].Error != errSick.Error() || letters[0].Parked.IsZero() {
			t.Errorf("dead letters: %+v", letters)
		}
	})
}

// There is one retry authority: what a failing consumer sees of a trigger is
// max_attempts calls, however it got into the queue.
func TestR5_RetriesDoNotMultiply(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxAttempts = 3
		r.start()
		r.consumer.set(func(_ int, t router.Trigger) (time.Duration, error) {
			if t.Device == "bad" {
				return time.Millisecond, errSick
			}
			return time.Millisecond, nil
		})
		for i := range 5 {
			r.offer(trigger("bad", i))
		}
		for i := range 400 {
			r.offer(trigger("good", i))
			time.Sleep(100 * time.Millisecond)
		}
		for i := range 5 {
			if n := len(r.consumer.callsOf(fmt.Sprintf("bad/%d", i))); n != 3 {
				t.Errorf("bad/%d was called %d times, want 3", i, n)
			}
		}
		if left := r.unsettled(); len(left) > 0 || r.deaths()[fallback.DeadMaxAttempts] != 5 {
			t.Errorf("not settled %q, dead %v", left, r.deaths())
		}
	})
}

// After 13 hours nobody wants to hear of most of it, but nothing is thrown
// away.
func TestR8_WhatIsTooOldDiesWithItsReasonAndCanBeRedriven(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxAge = time.Hour
		r.breaker.Max = time.Hour
		r.start()
		r.outlet.ForceOpen(13 * time.Hour)
		r.traffic(3, 9, time.Second)
		time.Sleep(13*time.Hour - time.Minute)
		r.traffic(3, 9, time.Second)
		r.drained(10 * time.Minute)
		if got := len(r.consumer.ids()); got != 9 || r.deaths()[fallback.DeadExpired] != 9 {
			t.Errorf("%d delivered, dead %v; want 9 and 9", got, r.deaths())
		}
		redriven := 0
		for d, err := range r.mem.Dead(t.Context(), fallback.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Reason != fallback.DeadExpired {
				t.Errorf("%s: %s", d.Trigger.ID, d.Reason)
			}
			if err := r.outlet.Redrive(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			redriven++
		}
		r.drained(time.Minute)
		got := r.consumer.taken()
		if redriven != 9 || len(got) != 18 {
			t.Fatalf("%d redriven, %d delivered", redriven, len(got))
		}
		newest := map[string]string{}
		for _, d := range got[9:] {
			if !d.Redriven || d.Sequence < newest[d.Device] {
				t.Errorf("redriven %s after %s, marked %v", d.Sequence, newest[d.Device], d.Redriven)
			}
			newest[d.Device] = d.Sequence
		}
		for range r.mem.Dead(t.Context(), fallback.Filter{}) {
			t.Error("a redriven dead letter is still there")
		}
		synctest.Wait()
	})
}

// An operator shortens an open window that has just begun: the probe comes
// when base is over, not when the window would have.
func TestShortenedWindowEndsOnTime(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.breaker.Base, r.breaker.Max = 10*time.Second, time.Hour
		r.start()
		r.outlet.ForceOpen(time.Hour)
		for i := range 5 {
			r.offer(trigger(fmt.Sprint("dev", i), 0))
		}
		time.Sleep(time.Second)
		r.outlet.ProbeNow()
		time.Sleep(8900 * time.Millisecond)
		if got := r.states(); len(got) != 1 {
			t.Errorf("after 9.9 s: %v", got)
		}
		time.Sleep(200 * time.Millisecond)
		if r.closes() != 1 {
			t.Errorf("after 10.1 s: %v", r.states())
		}
		r.drained(time.Second)
		r.checkAll()
	})
}

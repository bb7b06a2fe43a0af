package fallback_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// answer is a sink's error with a cause.
func answer(c router.Cause, status int, retryAfter time.Duration) error {
	return &router.DeliveryError{Cause: c, Status: status, RetryAfter: retryAfter, Err: errors.New("no")}
}

// once answers the first call so, and the others well.
func once(err error) func(int, router.Trigger) (time.Duration, error) {
	return func(n int, _ router.Trigger) (time.Duration, error) {
		if n == 0 {
			return time.Millisecond, err
		}
		return time.Millisecond, nil
	}
}

func TestR9_GoneDisablesTheConsumerUntilItIsEnabled(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(once(answer(router.Gone, 410, 0)))
		r.traffic(4, 20, 10*time.Millisecond)
		time.Sleep(time.Hour)
		s := r.outlet.Status()
		if r.consumer.count() != 1 || !s.Disabled || s.Backlog != 20 || r.counted(&r.disabled) != 1 {
			t.Errorf("%d calls, told %d times, %+v", r.consumer.count(), r.counted(&r.disabled), s)
		}
		if r.diverts()[fallback.ReasonDisabled] != 20 {
			t.Errorf("diverted: %v", r.diverts())
		}
		if s.Breaker.State != breaker.Closed {
			t.Errorf("the breaker is %v", s.Breaker.State)
		}
		r.outlet.Enable()
		r.drained(time.Minute)
		r.checkAll()
	})
}

// 429: the item waits for what was asked, the load is taken back, and the
// breaker stays closed so long as it is not said all the time.
func TestR9_ThrottledItemWaitsForItsRetryAfterAndTheRampBegins(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(once(answer(router.Throttled, 429, 7*time.Second)))
		r.offer(trigger("a", 0))
		time.Sleep(100 * time.Millisecond)
		s := r.outlet.Status()
		if s.Breaker.State != breaker.Closed || s.Breaker.RampWindow != 2 || s.LaneMax != 16 {
			t.Errorf("after a 429: %v, ramp window %d, lane %d", s.Breaker.State, s.Breaker.RampWindow, s.LaneMax)
		}
		r.drained(time.Minute)
		calls := r.consumer.callsOf("a/0")
		if len(calls) != 2 || calls[1].Sub(calls[0]) < 7*time.Second || calls[1].Sub(calls[0]) > 7100*time.Millisecond {
			t.Errorf("calls at %v", calls)
		}
		time.Sleep(15 * time.Second)
		if s := r.outlet.Status(); s.Breaker.RampWindow != 0 {
			t.Errorf("the ramp never ends: window %d", s.Breaker.RampWindow)
		}
		r.checkAll()
	})
}

// Every fifth 429 in a row is a failure, so that a consumer that says nothing
// else is left alone in the end.
func TestR9_ConsumerThatOnlyThrottlesTripsInTheEnd(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(time.Millisecond, answer(router.Throttled, 429, 0)))
		n := 0
		for ; r.outlet.Status().Breaker.State == breaker.Closed && n < 200; n++ {
			r.offer(trigger(fmt.Sprint("dev", n), 0))
			time.Sleep(50 * time.Millisecond)
		}
		if n < 5 || n == 200 {
			t.Errorf("tripped after %d triggers", n)
		}
		if calls := r.consumer.count(); calls < 25 {
			t.Errorf("tripped after %d calls: 5 failures are 25 answers", calls)
		}
		if r.deaths()[fallback.DeadMaxAttempts] > 0 {
			t.Errorf("throttled triggers died: %v", r.deaths())
		}
		r.consumer.set(nil)
		r.drained(5 * time.Minute)
		r.checkAll()
	})
}

// 503 with Retry-After lengthens the item's wait.
func TestR9_UnavailableHonoursRetryAfter(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxRetryAfter = 20 * time.Second
		r.start()
		r.consumer.set(func(n int, t router.Trigger) (time.Duration, error) {
			if n == 0 {
				return time.Millisecond, answer(router.Unavailable, 503, time.Hour)
			}
			return time.Millisecond, nil
		})
		r.offer(trigger("a", 0))
		r.drained(time.Minute)
		calls := r.consumer.callsOf("a/0")
		if gap := calls[1].Sub(calls[0]); gap < 20*time.Second || gap > 20100*time.Millisecond {
			t.Errorf("second call after %v, want the bound of 20 s", gap)
		}
	})
}

// A permanent no is no fault of the consumer: dead letter, and the breaker
// hears that it is well.
func TestR9_RejectedAndUnsentTriggersDieAtOnceAndHarmNobody(t *testing.T) {
	for _, test := range []struct {
		cause router.Cause
		dead  fallback.DeadReason
	}{{router.Rejected, fallback.DeadRejected}, {router.Unsent, fallback.DeadUnsent}} {
		story(t, func(t *testing.T, r *rig) {
			r.start()
			r.consumer.set(func(_ int, tr router.Trigger) (time.Duration, error) {
				if tr.Device == "bad" {
					return time.Millisecond, answer(test.cause, 422, 0)
				}
				return time.Millisecond, nil
			})
			for i := range 50 {
				r.offer(trigger("bad", i))
			}
			r.offer(trigger("good", 0))
			r.drained(time.Second)
			if r.deaths()[test.dead] != 50 || r.consumer.count() != 51 || len(r.states()) > 0 || len(r.diverts()) > 0 {
				t.Errorf("dead %v, %d calls, states %v, diverted %v", r.deaths(), r.consumer.count(), r.states(), r.diverts())
			}
			if left := r.unsettled(); len(left) > 0 {
				t.Errorf("not settled: %q", left)
			}
		})
	}
}

// With no room for dead letters a rejected trigger stays parked, is seen to,
// and is not called again.
func TestDeadLettersFullKeepsTheItemParked(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.mem = fallback.NewMemQueue(0, 1)
		r.queue = r.mem
		r.start()
		r.consumer.set(func(_ int, tr router.Trigger) (time.Duration, error) {
			if tr.Device == "bad" {
				return time.Millisecond, answer(router.Rejected, 422, 0)
			}
			return time.Millisecond, nil
		})
		r.offer(trigger("bad", 0))
		r.offer(trigger("bad", 1))
		time.Sleep(time.Minute)
		s := r.outlet.Status()
		if !s.DeadFull || s.Backlog != 1 || r.consumer.count() != 2 {
			t.Fatalf("%d calls, %+v", r.consumer.count(), s)
		}
		for d := range r.mem.Dead(t.Context(), fallback.Filter{}) {
			if err := r.mem.DeleteDead(t.Context(), d.Seq); err != nil {
				t.Fatal(err)
			}
		}
		r.drained(time.Minute)
		if s := r.outlet.Status(); s.DeadFull || r.deaths()[fallback.DeadRejected] != 2 || r.consumer.count() != 2 {
			t.Errorf("%d calls, dead %v, %+v", r.consumer.count(), r.deaths(), s)
		}
	})
}

// A sink that hangs beyond its deadline, panics or ends its goroutine costs
// one failed call, never a worker or a probe's place.
func TestB1_SinkThatHangsPanicsOrExitsIsAFailedCall(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Concurrency = 4
		r.start()
		r.consumer.set(func(n int, _ router.Trigger) (time.Duration, error) {
			switch n % 3 {
			case 0:
				panic("boom")
			case 1:
				runtime.Goexit()
			}
			return time.Hour, nil
		})
		r.traffic(10, 300, 20*time.Millisecond)
		if s := r.outlet.Status(); s.Breaker.State == breaker.Closed {
			t.Errorf("did not trip: %+v", s)
		}
		r.consumer.set(nil)
		r.drained(2 * time.Minute)
		r.checkAll()
		if r.counted(&r.panics) == 0 {
			t.Error("no panic was told")
		}
		texts := fmt.Sprint(r.outlet.Status().Errors)
		for _, want := range []string{"boom", "goroutine", "deadline"} {
			if !strings.Contains(texts, want) {
				t.Errorf("no error says %q: %s", want, texts)
			}
		}
	})
}

// The operator's pause holds the backlog, not the live triggers of others.
func TestPauseHoldsTheReplayOnly(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(once(errSick))
		r.offer(trigger("a", 0))
		time.Sleep(10 * time.Millisecond)
		r.outlet.Pause()
		r.offer(trigger("a", 1)) // behind a parked one
		r.offer(trigger("b", 0))
		time.Sleep(time.Minute)
		if got := r.consumer.ids(); !slices.Equal(got, []string{"b/0"}) || !r.outlet.Status().Paused {
			t.Errorf("delivered while paused: %q", got)
		}
		// A breaker that opens meanwhile recovers through live triggers.
		r.outlet.ForceOpen(time.Second)
		time.Sleep(2 * time.Second)
		for i := range 10 {
			r.offer(trigger("c", i))
			time.Sleep(100 * time.Millisecond)
		}
		if s := r.outlet.Status(); s.Breaker.State != breaker.Closed {
			t.Errorf("the breaker is %v", s.Breaker.State)
		}
		r.outlet.Resume()
		r.drained(time.Minute)
		r.checkAll()
	})
}

func TestMaxRateBoundsAllCalls(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxRate = 50
		r.start()
		began := time.Now()
		for i := range 500 {
			r.offer(trigger(fmt.Sprint("dev", i%40), i))
		}
		r.drained(time.Minute)
		r.checkAll()
		if took := time.Since(began); took < 9800*time.Millisecond || took > 10500*time.Millisecond {
			t.Errorf("500 calls at 50/s took %v", took)
		}
	})
}

// More live triggers than the lane holds: the rest is parked, in order.
func TestLaneOverflowIsParked(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Lane, r.cfg.Concurrency = 32, 2
		r.start()
		for i := range 200 {
			r.offer(trigger(fmt.Sprint("dev", i%50), i))
		}
		synctest.Wait()
		s := r.outlet.Status()
		if s.Lane > 32 || r.diverts()[fallback.ReasonLaneFull] == 0 {
			t.Errorf("lane %d, diverted %v", s.Lane, r.diverts())
		}
		r.drained(time.Minute)
		r.checkAll()
	})
}

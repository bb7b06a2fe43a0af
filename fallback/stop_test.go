package fallback_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/queuetest"
	"github.com/tripline/tripline/router"
)

func TestR6_StopDeliversForAWhileAndParksTheRest(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Concurrency = 2
		r.start()
		r.consumer.set(always(40*time.Millisecond, nil))
		for i := range 500 {
			r.offer(trigger(fmt.Sprint("dev", i%50), i))
		}
		began := time.Now()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 5500*time.Millisecond {
			t.Errorf("stopping took %v, want the grace of 5 s", took)
		}
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		if n := len(r.consumer.ids()); n < 200 || r.diverts()[fallback.ReasonShutdown] != 500-n {
			t.Errorf("%d delivered, diverted %v", n, r.diverts())
		}
		r.outlet.Offer(t.Context(), trigger("late", 1), func() { t.Error("settled after the end") })

		r.consumer.set(nil)
		r.start() // the next process finds the rest
		r.drained(time.Minute)
		r.checkAll()
	})
}

func TestStopOfAnIdleOutletIsImmediate(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.traffic(3, 10, 10*time.Millisecond)
		began := time.Now()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		if err := r.outlet.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
		if err := r.outlet.Redrive(t.Context(), fallback.DeadLetter{Trigger: trigger("a", 1)}); err == nil {
			t.Error("it redrives after the end")
		}
		r.cancel = nil
	})
}

// A sink that ignores its context can't keep the process from ending.
func TestStopDoesNotWaitForASinkThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t)
		r.cfg.StopTimeout = 3 * time.Second
		r.start()
		sink := sinkFunc(func(context.Context, router.Trigger) error { <-release; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		stuck := fallback.New(sink, r.outlet.Breaker(), fallback.NewMemQueue(0, 0), fallback.With(r.cfg))
		ended := make(chan error, 1)
		go func() { ended <- stuck.Run(ctx) }()
		synctest.Wait()
		stuck.Offer(t.Context(), trigger("a", 1), func() {})
		stuck.Offer(t.Context(), trigger("b", 1), func() {})
		synctest.Wait()
		cancel()
		if err := <-ended; err == nil {
			t.Error("Run says that all is well")
		}
		close(release)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

type sinkFunc func(context.Context, router.Trigger) error

func (f sinkFunc) Deliver(ctx context.Context, t router.Trigger) error { return f(ctx, t) }

// kill -9 with triggers in memory, in flight and on their way to the queue:
// whatever was not settled comes again, and nothing is lost.
func TestR6_NothingSettledIsLostWhenTheProcessDies(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(900*time.Millisecond, nil))
		r.traffic(30, 1000, 2*time.Millisecond)
		left := r.unsettled()
		// The old process is gone, as far as the consumer and the queue can
		// tell: a new one serves the same queue.
		old, endOld, ended := r.outlet, r.cancel, r.ended
		for p := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = old.Disown(ctx, p)
		}
		r.consumer.set(nil)
		r.start()
		for _, id := range left {
			device, number, _ := strings.Cut(id, "/")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			tr := trigger(device, n)
			r.outlet.Offer(t.Context(), tr, func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.settled[id]++
			})
		}
		r.drained(2 * time.Minute)
		r.checkOrder()
		got := map[string]bool{}
		for _, id := range r.consumer.ids() {
			got[id] = true
		}
		if len(got) != 1000 {
			t.Errorf("%d of 1000 arrived", len(got))
		}
		endOld()
		<-ended
	})
}

// NATS is away while the consumer is sick: the triggers wait in memory, and
// the partitions wait for them.
func TestR6_QueueAwayDuringADivert(t *testing.T) {
	for _, fault := range []queuetest.Fault{queuetest.NotApplied, queuetest.AnswerLost} {
		story(t, func(t *testing.T, r *rig) {
			faulty := queuetest.NewFaulty(r.mem)
			r.queue = faulty
			r.cfg.MaxWaiting = 20_000
			r.start()
			r.consumer.set(always(time.Millisecond, errSick))
			faulty.FailAlways(queuetest.Park, fault)
			offered := make(chan struct{})
			go func() {
				defer close(offered)
				r.traffic(30, 500, 10*time.Millisecond)
			}()
			time.Sleep(20 * time.Second)
			if s := r.outlet.Status(); !s.Blocked || s.Waiting == 0 {
				t.Errorf("%s: not shown: %+v", fault, s)
			}
			faulty.FailAlways(queuetest.Park, "")
			r.consumer.set(nil)
			<-offered
			r.drained(2 * time.Minute)
			r.checkAll()
			if r.errorsTold() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

// A reload replaces the outlet: the old one parks what it has at once, the
// new one goes on from there.
func TestRetireMakesWayForASuccessor(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.Concurrency = 1
		r.start()
		r.consumer.set(always(40*time.Millisecond, nil))
		for i := range 50 {
			r.offer(trigger(fmt.Sprint("dev", i%10), i))
		}
		r.outlet.Retire()
		r.outlet.Offer(t.Context(), trigger("late", 1), func() { t.Error("settled by the retired one") })
		began := time.Now()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		r.start()
		r.drained(time.Minute)
		r.checkAll()
	})
}

package fallback_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/queuetest"
	"github.com/tripline/tripline/router"
)

// Each step of the queue fails, once as not done and once as done with the
// answer lost, at several moments of an outage: the consumer still gets
// everything once and in order, and what dies dies once.
func TestEachStepOfTheQueueMayFail(t *testing.T) {
	for _, step := range queuetest.Steps() {
		for _, fault := range []queuetest.Fault{queuetest.NotApplied, queuetest.AnswerLost} {
			t.Run(fmt.Sprintf("%s %s", step, fault), func(t *testing.T) {
				story(t, func(t *testing.T, r *rig) {
					faulty := queuetest.NewFaulty(r.mem)
					r.queue = faulty
					faulty.Fail(step, fault, fault)
					r.start()
					r.consumer.set(func(_ int, tr router.Trigger) (time.Duration, error) {
						if tr.Device == "rejected" {
							return time.Millisecond, answer(router.Rejected, 422, 0)
						}
						return time.Second, nil
					})
					r.traffic(10, 200, 5*time.Millisecond)
					bad := trigger("rejected", 1)
					r.outlet.Offer(t.Context(), bad, func() {})
					faulty.Fail(step, fault)
					r.consumer.set(func(_ int, tr router.Trigger) (time.Duration, error) {
						if tr.Device == "rejected" {
							return time.Millisecond, answer(router.Rejected, 422, 0)
						}
						return time.Millisecond, nil
					})
					r.traffic(10, 2000, 5*time.Millisecond)
					faulty.Fail(step, fault)
					r.drained(2 * time.Minute)
					r.checkAll()
					dead := 0
					for _, err := range r.mem.Dead(t.Context(), fallback.Filter{}) {
						if dead++; err != nil {
							t.Fatal(err)
						}
					}
					if dead != 1 {
						t.Errorf("%d dead letters, want 1", dead)
					}
					if u := r.mem.Usage(); u.Items != 0 {
						time.Sleep(5 * time.Second) // the sweep
						if u = r.mem.Usage(); u.Items != 0 {
							t.Errorf("%d items are left in the queue", u.Items)
						}
					}
					if faulty.Count(step) == 0 {
						t.Errorf("the step %s never came", step)
					}
				})
			})
		}
	}
}

// The deletion fails after a 2xx: the delivery stands. The trigger is not
// called again, its slot goes on, and the deletion is made up for.
func TestR18_DeliveryStandsWhenItsBookkeepingFails(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		faulty := queuetest.NewFaulty(r.mem)
		r.queue = faulty
		r.start()
		r.outlet.ForceOpen(2 * time.Second)
		for i := range 10 {
			r.offer(trigger("a", i))
		}
		faulty.FailAlways(queuetest.Delete, queuetest.NotApplied)
		r.drained(10 * time.Second)
		r.offer(trigger("a", 10)) // live again, though the queue still holds ten
		r.drained(time.Second)
		r.checkAll()
		if u := r.mem.Usage(); u.Items != 10 {
			t.Errorf("%d items in the queue, want 10", u.Items)
		}
		time.Sleep(time.Minute)
		faulty.FailAlways(queuetest.Delete, "")
		time.Sleep(2 * time.Second)
		if u := r.mem.Usage(); u.Items != 0 {
			t.Errorf("%d items in the queue, want none", u.Items)
		}
		if n := r.consumer.count(); n != 11 {
			t.Errorf("%d calls, want 11", n)
		}
	})
}

// The same, and the process ends before the deletion is made up for: the next
// one delivers it once more, with the same id and before anything newer.
func TestR18_RestartAfterFailedBookkeepingRepeatsUnderTheSameID(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		faulty := queuetest.NewFaulty(r.mem)
		r.queue = faulty
		r.start()
		r.outlet.ForceOpen(2 * time.Second)
		for i := range 3 {
			r.offer(trigger("a", i))
		}
		faulty.FailAlways(queuetest.Delete, queuetest.NotApplied)
		r.drained(10 * time.Second)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		faulty.FailAlways(queuetest.Delete, "")
		r.start()
		r.offer(trigger("a", 3))
		r.drained(10 * time.Second)
		want := []string{"a/0", "a/1", "a/2", "a/0", "a/1", "a/2", "a/3"}
		if got := r.consumer.ids(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Someone else's late park lands in a slot that is believed to be empty.
func TestAnItemThatNobodyCountedIsFound(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.mem.Park(trigger("a", 1), fallback.ReasonOpen, func(uint64, error) {})
		time.Sleep(time.Minute)
		if got := r.consumer.ids(); !slices.Equal(got, []string{"a/1"}) {
			t.Errorf("got %q", got)
		}
		synctest.Wait()
		if s := r.outlet.Status(); s.Backlog != 0 || s.SlotsParking != 0 {
			t.Errorf("status: %+v", s)
		}
	})
}

package fallback_test

import (
	"testing"
	"time"

	"github.com/tripline/tripline/fallback"
)

// purge removes what the filter accepts and checks the count.
func (r *rig) purge(f fallback.Filter, want int) {
	r.t.Helper()
	n, err := r.outlet.Purge(r.t.Context(), f)
	if err != nil || n != want {
		r.t.Errorf("purge %+v: %d, %v; want %d", f, n, err, want)
	}
}

// What is purged never arrives; what stays arrives in order, once each, also
// that of the devices that share a slot with a purged one.
func TestPurgeLeavesTheRestInOrder(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(time.Millisecond, errSick))
		r.traffic(20, 400, time.Millisecond)
		time.Sleep(time.Second) // all that failed is parked
		if b := r.outlet.Status().Backlog; b != 400 {
			t.Fatalf("backlog %d, want 400", b)
		}
		r.purge(fallback.Filter{Device: "dev-7"}, 20)
		r.purge(fallback.Filter{Device: "dev-7"}, 0)
		r.purge(fallback.Filter{OlderThan: time.Hour}, 0)
		if b := r.outlet.Status().Backlog; b != 380 {
			t.Errorf("backlog %d after the purge, want 380", b)
		}
		r.consumer.set(nil)
		r.drained(5 * time.Minute)
		r.checkOrder()
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		got := r.consumer.taken()
		for _, g := range got {
			if g.Device == "dev-7" {
				t.Errorf("%s was purged, and delivered", g.ID)
			}
		}
		if len(got) != 380 {
			t.Errorf("%d delivered, want 380", len(got))
		}
		r.offer(trigger("dev-7", 1000)) // and its slot is live again
		r.drained(time.Second)
	})
}

// A purge while the backlog is replayed and more is offered neither loses nor
// reorders anything else.
func TestPurgeDuringTheReplay(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.start()
		r.consumer.set(always(time.Millisecond, errSick))
		r.traffic(10, 1000, time.Millisecond)
		time.Sleep(2 * time.Second)
		r.consumer.set(nil)
		go func() {
			for range 40 {
				time.Sleep(200 * time.Millisecond)
				if _, err := r.outlet.Purge(t.Context(), fallback.Filter{Device: "dev-3"}); err != nil {
					t.Errorf("purge: %v", err)
				}
			}
		}()
		r.traffic(10, 1000, 5*time.Millisecond)
		time.Sleep(10 * time.Second)
		r.drained(5 * time.Minute)
		r.checkOrder()
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		others := map[string]bool{}
		for _, g := range r.consumer.taken() {
			if g.Device != "dev-3" {
				others[g.ID] = true
			}
		}
		if len(others) != 1800 {
			t.Errorf("%d of the other devices' 1800 triggers arrived", len(others))
		}
	})
}

// The attempts of a purged trigger are not held against the next one.
func TestPurgeForgetsTheAttemptsOfWhatItRemoves(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxAttempts = 3
		r.breaker.MinSamples = 1000
		r.start()
		r.consumer.set(always(time.Millisecond, errSick))
		r.offer(trigger("dev-1", 1))
		r.offer(trigger("dev-1", 2))
		time.Sleep(1500 * time.Millisecond) // two calls of the first
		if n := len(r.consumer.callsOf("dev-1/1")); n != 2 {
			t.Fatalf("%d calls, want 2", n)
		}
		for item, err := range r.mem.Items(t.Context(), fallback.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := r.outlet.PurgeItem(t.Context(), item); !ok || err != nil {
				t.Fatalf("purging %s: %t, %v", item.Trigger.ID, ok, err)
			}
			break
		}
		time.Sleep(1500 * time.Millisecond)
		r.consumer.set(nil)
		r.drained(time.Minute)
		if got := r.consumer.ids(); len(got) != 1 || got[0] != "dev-1/2" {
			t.Errorf("got %q, want the second alone", got)
		}
		if d := r.deaths(); len(d) != 0 {
			t.Errorf("dead letters: %v", d)
		}
	})
}

// Forget removes what waits in memory, what is parked, and the dead letters of
// a device, and waits for its call; the other devices notice nothing.
func TestForgetLeavesNothingOfADevice(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.cfg.MaxAttempts = 1
		r.cfg.Concurrency = 1
		r.start()
		r.consumer.set(always(100*time.Millisecond, errSick))
		r.offer(trigger("dev-1", 1)) // becomes a dead letter
		time.Sleep(150 * time.Millisecond)
		r.consumer.set(always(150*time.Millisecond, nil))
		r.offer(trigger("dev-2", 2)) // occupies the only worker
		time.Sleep(10 * time.Millisecond)
		r.offer(trigger("dev-1", 3)) // these wait in the lane
		r.offer(trigger("dev-1", 4))
		r.offer(trigger("dev-3", 5))
		f, err := r.outlet.Forget(t.Context(), "dev-1")
		if err != nil || f != (fallback.Forgotten{Waiting: 2, Dead: 1}) {
			t.Errorf("forgot %+v, %v; want two waiting and a dead letter", f, err)
		}
		r.consumer.set(always(100*time.Millisecond, errSick))
		r.offer(trigger("dev-1", 6)) // is out when it is to be forgotten
		r.offer(trigger("dev-1", 7))
		time.Sleep(250 * time.Millisecond)
		if _, err = r.outlet.Forget(t.Context(), "dev-1"); err != nil {
			t.Error(err)
		}
		r.consumer.set(nil)
		r.drained(5 * time.Minute)
		for _, g := range r.consumer.taken() {
			if g.Device == "dev-1" {
				t.Errorf("%s was delivered", g.ID)
			}
		}
		for d, err := range r.mem.Dead(t.Context(), fallback.Filter{Device: "dev-1"}) {
			t.Errorf("a dead letter is left: %s, %v", d.Trigger.ID, err)
		}
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		r.checkOrder()
	})
}

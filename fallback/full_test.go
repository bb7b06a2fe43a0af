package fallback_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// sicken trips the breaker for an hour and makes the queue small.
func sicken(r *rig, items int, onFull fallback.OnFull) {
	r.mem = fallback.NewMemQueue(uint64(items*130), 0)
	r.queue = r.mem
	r.breaker.Max = time.Hour
	r.cfg.OnFull, r.cfg.MaxWaiting = onFull, 5000
	r.start()
	r.outlet.ForceOpen(time.Hour)
}

func TestR16_BlockMakesOffersWaitAndLosesNothing(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		sicken(r, 20, fallback.Block)
		offered := make(chan struct{})
		go func() {
			defer close(offered)
			for i := range 100 {
				r.offer(trigger(fmt.Sprint("dev", i%7), i))
			}
		}()
		time.Sleep(time.Minute)
		select {
		case <-offered:
			t.Error("100 offers went into a queue for 20")
		default:
		}
		if s := r.outlet.Status(); !s.Blocked || !s.Full {
			t.Errorf("not shown: %+v", s)
		}
		time.Sleep(2 * time.Hour)
		<-offered
		r.drained(time.Minute)
		r.checkAll()
		if s := r.outlet.Status(); s.Blocked || s.Full {
			t.Errorf("still shown: %+v", s)
		}
	})
}

func TestR16_BlockedOfferEndsWithItsContextUnsettled(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		sicken(r, 1, fallback.Block)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		settled := 0
		for i := range 100 {
			r.outlet.Offer(ctx, trigger("a", i), func() { settled++ })
		}
		if ctx.Err() == nil {
			t.Error("no offer waited")
		}
		if settled == 100 {
			t.Error("all were settled")
		}
		r.outlet.ProbeNow()
		time.Sleep(time.Hour)
		r.drained(time.Minute)
	})
}

func TestR16_DeadMakesRoomWithTheOldest(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		sicken(r, 20, fallback.Dead)
		for i := range 100 {
			r.offer(trigger(fmt.Sprint("dev", i%7), i))
		}
		time.Sleep(time.Minute)
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		time.Sleep(2 * time.Hour)
		r.drained(time.Minute)
		r.checkOrder()
		delivered, dead := len(r.consumer.ids()), r.deaths()[fallback.DeadOverflow]
		if delivered+dead != 100 || delivered > 21 || dead == 0 {
			t.Errorf("%d delivered, %d dead: %v", delivered, dead, r.deaths())
		}
	})
}

func TestR16_DropCountsWhatItCosts(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		sicken(r, 20, fallback.Drop)
		for i := range 100 {
			r.offer(trigger(fmt.Sprint("dev", i%7), i))
		}
		time.Sleep(time.Minute)
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		time.Sleep(2 * time.Hour)
		r.drained(time.Minute)
		r.checkOrder()
		if delivered := len(r.consumer.ids()); delivered+r.counted(&r.dropped) != 100 || r.counted(&r.dropped) < 70 {
			t.Errorf("%d delivered, %d dropped", delivered, r.counted(&r.dropped))
		}
	})
}

// A consumer that wants nothing any more never holds up the others.
func TestR16_DisabledConsumerNeverBlocks(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.mem = fallback.NewMemQueue(20*130, 0)
		r.queue = r.mem
		r.cfg.OnFull, r.cfg.MaxWaiting = fallback.Block, 5000
		r.start()
		r.consumer.set(always(time.Millisecond, answer(router.Gone, 410, 0)))
		r.traffic(7, 100, 10*time.Millisecond)
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := r.unsettled(); len(left) > 0 {
			t.Errorf("not settled: %q", left)
		}
		if r.deaths()[fallback.DeadOverflow] < 70 {
			t.Errorf("dead: %v", r.deaths())
		}
	})
}

// With no room for dead letters either, nothing is thrown away: offers wait.
func TestR16_DeadWithNoRoomForDeadLettersWaits(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.mem = fallback.NewMemQueue(20*130, 3)
		r.queue = r.mem
		r.breaker.Max = time.Hour
		r.cfg.OnFull, r.cfg.MaxWaiting = fallback.Dead, 5000
		r.start()
		r.outlet.ForceOpen(time.Hour)
		go func() {
			for i := range 100 {
				r.offer(trigger(fmt.Sprint("dev", i%7), i))
			}
		}()
		time.Sleep(time.Minute)
		if s := r.outlet.Status(); !s.Blocked || !s.Full || !s.DeadFull {
			t.Errorf("not shown: %+v", s)
		}
		time.Sleep(2 * time.Hour)
		r.drained(time.Minute)
		r.checkOrder()
		if n := len(r.consumer.ids()); n != 97 || r.deaths()[fallback.DeadOverflow] != 3 {
			t.Errorf("%d delivered, dead %v", n, r.deaths())
		}
	})
}

// A queue that fills up says when it will be full, one that drains when it
// will be empty.
func TestStatusEstimatesWhenItIsFullOrEmpty(t *testing.T) {
	story(t, func(t *testing.T, r *rig) {
		r.mem = fallback.NewMemQueue(128*10_000, 0)
		r.queue = r.mem
		r.breaker.Max = time.Hour
		r.start()
		if s := r.outlet.Status(); s.ETA != 0 || s.FullIn != 0 || !s.Oldest.IsZero() {
			t.Errorf("while empty: %+v", s)
		}
		r.outlet.ForceOpen(time.Minute)
		began := time.Now()
		r.traffic(50, 2000, 10*time.Millisecond) // 20 s at 100 a second
		s := r.outlet.Status()
		if s.ParkRate < 90 || s.ParkRate > 110 || s.FullIn < time.Minute || s.FullIn > 2*time.Minute {
			t.Errorf("parks %v/s, full in %v", s.ParkRate, s.FullIn)
		}
		if age := s.Oldest.Sub(began); age < 0 || age > 100*time.Millisecond {
			t.Errorf("the oldest is %v younger than the first", age)
		}
		if s.BacklogBytes == 0 || s.BacklogMax != 128*10_000 || s.Backlog != 2000 {
			t.Errorf("backlog: %+v", s)
		}
		r.consumer.set(always(40*time.Millisecond, nil))
		time.Sleep(42 * time.Second)
		s = r.outlet.Status()
		if s.ReplayRate == 0 || s.ETA == 0 || s.FullIn != 0 {
			t.Errorf("replays %v/s, empty in %v, full in %v", s.ReplayRate, s.ETA, s.FullIn)
		}
		r.drained(time.Minute)
		r.checkAll()
	})
}

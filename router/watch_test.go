package router_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// storesTicks makes the tape store its ticks, a second after the last
// message's time for each second that passes.
func (r *rig) storesTicks() {
	begun := time.Now()
	clock := t0
	if n := len(r.tape.messages); n > 0 {
		clock = r.tape.messages[n-1].Stored
	}
	r.tape.tick = func(string) error {
		r.tape.add(tick(r.tape.last()+1, clock+time.Since(begun).Milliseconds()))
		return nil
	}
}

func TestTicksMoveTheTimeOnlyWhileTimersArePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		r.cfg.Tracker.Dwell = []time.Duration{10 * time.Second}
		r.storesTicks()
		r.start()
		time.Sleep(9 * time.Second)
		r.expect("van enter a")
		time.Sleep(3 * time.Second)
		r.expect("van enter a", "van dwell a")
		ticks := r.tape.ticked()
		if ticks < 8 || ticks > 12 {
			t.Errorf("%d ticks in 12 s with a pending dwell, want about 10", ticks)
		}
		time.Sleep(60 * time.Second) // only to see that the reader lives
		if more := r.tape.ticked() - ticks; more > 5 {
			t.Errorf("%d ticks in a minute without timers, want 4", more)
		}
		if len(r.tape.begun()) != 1 {
			t.Errorf("the reader was restarted: %d reads", len(r.tape.begun()))
		}
		r.kill()
	})
}

// R15: the reader goes silent without an error; a tick that does not come
// back gives it away, and it is rebuilt from the last position.
func TestR15_SilentReaderIsRebuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		r.tape.deaf = true
		r.storesTicks()
		var mu sync.Mutex
		var reasons []error
		r.cfg.Hooks.ReaderRestarted = func(reason error) {
			mu.Lock()
			defer mu.Unlock()
			reasons = append(reasons, reason)
			r.tape.mu.Lock()
			r.tape.deaf = false
			r.tape.mu.Unlock()
		}
		r.start()
		r.expect()
		time.Sleep(22 * time.Second) // idle tick after 15 s, given up 5 s later
		r.expect("van enter a")
		if len(reasons) != 1 || !errors.Is(reasons[0], router.ErrReaderSilent) {
			t.Errorf("restarted for %v, want once for ErrReaderSilent", reasons)
		}
		r.kill()
	})
}

// broken is a source whose reader breaks off after each batch.
type broken struct{ *tape }

func (b broken) Read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := make(chan *router.Batch)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = b.tape.Read(ctx, partition, from, one) })
	select {
	case batch := <-one:
		select {
		case out <- batch:
		case <-ctx.Done():
		}
	case <-ctx.Done():
		return nil
	}
	return errors.New("broken off")
}

func TestBrokenReaderGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []router.Message
		for i := range 20 {
			log = append(log, at(uint64(i+1), "van", t0+int64(i)*1000, float64(i%2)*5000))
		}
		r := newRig(t, index(t, circles(t, "a")...), log...)
		r.cfg.Source = broken{r.tape}
		r.start()
		time.Sleep(time.Minute)
		if got := r.box.triggers(); len(got) != 20 {
			t.Errorf("%d triggers, want 20", len(got))
		}
		for i, from := range r.tape.begun()[:6] {
			if from > uint64(3*i+1) {
				t.Errorf("read %d begins at %d: something was left out", i, from)
			}
		}
		r.kill()
	})
}

func TestTickThatCantBeStoredIsToldAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		r.cfg.Tracker.Dwell = []time.Duration{time.Hour}
		failures := 0
		r.cfg.Hooks.TickFailed = func(error) { failures++ }
		r.start()
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if failures < 3 || failures > 6 {
			t.Errorf("%d failures in 5 s, want about 4", failures)
		}
		if len(r.tape.begun()) != 1 {
			t.Error("the reader was blamed for it")
		}
		r.kill()
	})
}

// subscription is a source without a past, as in core mode.
type subscription struct{ *tape }

func (s subscription) Read(ctx context.Context, partition int, _ uint64, out chan<- *router.Batch) error {
	return s.tape.Read(ctx, partition, 0, out)
}

func TestCoreModeKeepsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...))
		r.cfg.Core = true
		r.cfg.Source = subscription{r.tape}
		r.cfg.Tracker.Dwell = []time.Duration{10 * time.Second}
		r.start()
		now := time.Now()
		r.tape.add(at(uint64(now.UnixMicro()), "van", now.UnixMilli(), 0))
		r.expect("van enter a")
		time.Sleep(10*time.Second - time.Millisecond)
		r.expect("van enter a")
		time.Sleep(time.Millisecond)
		r.expect("van enter a", "van dwell a")
		if r.tape.ticked() != 0 {
			t.Errorf("%d ticks were stored", r.tape.ticked())
		}
		got := r.box.triggers()
		if got[1].Sequence <= got[0].Sequence {
			t.Errorf("sequence %s after %s", got[1].Sequence, got[0].Sequence)
		}
		time.Sleep(40 * time.Second)
		r.kill()

		// The clock goes back over the restart: sequences don't.
		back := now.Add(-time.Hour)
		r.tape.messages = nil
		r.start()
		m := at(uint64(back.UnixMicro()), "van", now.UnixMilli()+60_000, 5000)
		r.tape.add(m)
		r.expect("van enter a", "van dwell a", "van exit a")
		if got := r.box.triggers(); got[2].Sequence <= got[1].Sequence {
			t.Errorf("sequence %s after %s", got[2].Sequence, got[1].Sequence)
		}
		r.kill()
	})
}

func TestReplayTellsNoHookAndNoSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := at(2, "van", t0+1, 0)
		asked.Reply = "reply"
		r := newRig(t, index(t, circles(t, "a")...), at(1, "bus", t0, 5000), asked)
		fixes := 0
		r.cfg.Hooks.Fix = func(*geofence.Fix, geofence.Result) { fixes++ }
		r.start()
		time.Sleep(time.Second) // the van is saved, the bus is not
		r.kill()
		if fixes != 2 {
			t.Fatalf("%d fixes told", fixes)
		}
		delete(r.tape.answers, "reply")
		fixes = 0
		r.start()
		if _, again := r.tape.answer("reply"); again || fixes != 1 {
			t.Errorf("after the restart: answered again %v, %d fixes told, want the bus's", again, fixes)
		}
		r.kill()
	})
}

func TestForgetIsDurableWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0), at(2, "bus", t0, 0))
		r.start()
		time.Sleep(time.Second)
		if saved := r.v.get(); len(saved.Presences) != 2 {
			t.Fatalf("saved %v", saved.Presences)
		}
		r.box.mu.Lock()
		r.box.hold = true
		r.box.mu.Unlock()
		r.tape.add(at(3, "van", t0+1, 5000)) // its trigger is still out
		synctest.Wait()
		known, err := r.p.Forget(t.Context(), "van")
		if !known || err != nil {
			t.Errorf("Forget = %v, %v", known, err)
		}
		if saved := r.v.get(); saved.Presences["van"] != nil || saved.Presences["bus"] == nil {
			t.Errorf("after Forget: %v", saved.Presences)
		}
		r.box.settle(0)
		time.Sleep(time.Minute)
		if saved := r.v.get(); saved.Presences["van"] != nil || saved.Offset != 4 {
			t.Errorf("its trigger brought it back: %+v", saved)
		}
		if known, err := r.p.Forget(t.Context(), "nobody"); known || err != nil {
			t.Errorf("Forget of an unknown device = %v, %v", known, err)
		}
		r.tape.add(at(4, "van", t0+2, 5000)) // a new life
		time.Sleep(time.Minute)
		if saved := r.v.get(); saved.Presences["van"] == nil {
			t.Error("the device is not saved when it reports again")
		}
		r.kill()
	})
}

func TestForgottenDevicesAreRemovedFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 5000), at(2, "bus", t0, 5000))
		r.cfg.Tracker.ForgetAfter = time.Hour
		r.start()
		time.Sleep(40 * time.Second)
		r.tape.add(at(3, "bus", t0+3_000_000, 5000), tick(4, t0+3_700_000))
		time.Sleep(40 * time.Second)
		saved := r.v.get()
		if saved.Presences["van"] != nil || saved.Presences["bus"] == nil {
			t.Errorf("saved %v", saved.Presences)
		}
		if st := r.p.Status(); st.Devices != 1 || saved.ReplayFrom != 5 {
			t.Errorf("status %+v", st)
		}
		r.kill()
	})
}

func TestQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a", "b")...),
			at(1, "van", t0, 0), at(2, "bus", t0, 10), at(3, "car", t0, 10_000))
		r.start()
		if names, err := r.p.Inside(t.Context(), "a"); err != nil || !slices.Equal(names, []string{"bus", "van"}) {
			t.Errorf("Inside = %q, %v", names, err)
		}
		p, ok, err := r.p.Presence(t.Context(), "car")
		if err != nil || !ok || len(p.Stays) != 1 || p.Stays[0].Fence.ID != "b" || p.Seq != 3 {
			t.Errorf("Presence = %+v, %v, %v", p, ok, err)
		}
		if _, ok, err := r.p.Presence(t.Context(), "nobody"); ok || err != nil {
			t.Errorf("Presence of an unknown device = %v, %v", ok, err)
		}
		for limit, want := range map[int]int{-1: 3, 0: 0, 2: 2, 9: 3} {
			if all, err := r.p.Devices(t.Context(), limit); err != nil || len(all) != want {
				t.Errorf("Devices(%d) gives %d, %v; want %d", limit, len(all), err, want)
			}
		}
		if ids, err := r.p.Versions(t.Context()); err != nil || len(ids) != 2 {
			t.Errorf("Versions = %q, %v", ids, err)
		}
		r.kill()
		if _, err := r.p.Inside(t.Context(), "a"); !errors.Is(err, router.ErrStopped) {
			t.Errorf("Inside of a stopped partition: %v", err)
		}
	})
}

func TestUnreadablePresenceStopsTheStart(t *testing.T) {
	for name, enc := range map[string]string{"newer format": "\x02\x01\x01", "cut short": "\x01", "empty": "", "no presence": "\x01\x01\x00\xff"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, index(t, circles(t, "a")...))
			r.v.saved.Presences["fleet.van"] = []byte(enc)
			r.start()
			err := <-r.done
			if err == nil || !strings.Contains(err.Error(), `"fleet.van"`) || !strings.Contains(err.Error(), "partition 3") {
				t.Errorf("%s: Run returned %v", name, err)
			}
			r.stop()
		})
	}
}

func TestWhereThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, index(t, circles(t, "a")...), at(1, "van", t0, 0))
		r.cfg.Consumers = consumers(
			router.Consumer{Name: "strict", Match: compile(t, router.MatchConfig{Where: "fix.speed < 5"}), Outlet: r.box})
		var told []string
		r.cfg.Hooks.WhereFailed = func(consumer string, err error) { told = append(told, consumer+": "+err.Error()) }
		wanted := -1
		r.cfg.Hooks.Transition = func(_ *geofence.Transition, n int) { wanted = n }
		r.start()
		r.expect()
		if len(told) != 1 || !strings.HasPrefix(told[0], "strict: where: ") || wanted != 0 {
			t.Errorf("told %q, %d consumers", told, wanted)
		}
		r.kill()
	})
}

package live_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

// history opens a stream and returns the past that it begins with, by
// consumer.
func history(t *testing.T, hub *live.Hub) map[string]live.History {
	t.Helper()
	events := watch(t, serve(t, hub, nil))
	synctest.Wait()
	found := map[string]live.History{}
	for _, e := range only(ready(events), "history") {
		var h live.History
		e.decode(t, &h)
		found[h.Consumer] = h
	}
	return found
}

func change(consumer, from, to string) live.Breaker {
	return live.Breaker{Consumer: consumer, At: time.Now(), From: from, To: to}
}

func TestAPageThatIsOpenedLaterIsToldOfTheTimeBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		begin := time.Now()
		hub.Consumers([]live.Consumer{{Name: "dispatch", Samples: 9, P99MS: 120}, {Name: "idle"}})
		time.Sleep(10 * time.Second)
		hub.Breaker(change("dispatch", "closed", "open"))
		time.Sleep(time.Second)
		hub.Breaker(change("dispatch", "open", "half_open"))
		hub.Probe(live.Probe{Consumer: "dispatch", At: time.Now(), Verdict: "healthy", LatencyMS: 80})
		hub.Consumers([]live.Consumer{{Name: "dispatch", Samples: 9, P99MS: 800}, {Name: "idle"}})

		past := history(t, hub)
		h := past["dispatch"]
		if !h.From.Equal(begin) || len(h.Changes) != 2 || h.Changes[1].To != "half_open" || !h.Changes[1].At.Equal(begin.Add(11*time.Second)) {
			t.Errorf("the past is %+v; want both changes since %v", h, begin)
		}
		if len(h.Probes) != 1 || h.Probes[0].LatencyMS != 80 {
			t.Errorf("the probes are %+v", h.Probes)
		}
		if len(h.P99) != 2 || h.P99[0].MS == nil || *h.P99[0].MS != 120 || *h.P99[1].MS != 800 {
			t.Errorf("the P99 was %+v", h.P99)
		}
		if idle := past["idle"]; len(idle.P99) != 2 || idle.P99[0].MS != nil || idle.Changes == nil {
			t.Errorf("the past of a consumer that nothing was sent to is %+v; want no figures, and lists", idle)
		}
	})
}

func TestTheMemoryEndsAfterFiveMinutesAndHoldsSoManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		list := []live.Consumer{{Name: "dispatch"}, {Name: "wild"}}
		hub.Consumers(list)
		hub.Breaker(change("dispatch", "closed", "open"))
		for range 12 * 60 {
			hub.Consumers(list)
			time.Sleep(time.Second)
		}
		hub.Breaker(change("dispatch", "open", "half_open"))
		for range 1000 {
			hub.Breaker(change("wild", "open", "half_open"))
			hub.Probe(live.Probe{Consumer: "wild", At: time.Now()})
			time.Sleep(time.Millisecond)
		}
		past := history(t, hub)
		h := past["dispatch"]
		if len(h.Changes) != 1 || h.Changes[0].To != "half_open" || !h.From.Equal(time.Now().Add(-5*time.Minute)) {
			t.Errorf("after 12 minutes the past is %+v; want what happened in the last 5", h)
		}
		if n := len(h.P99); n < 59 || n > 60 {
			t.Errorf("%d samples in 5 minutes; want one in 5 s", n)
		}
		w := past["wild"]
		if len(w.Changes) != 128 || len(w.Probes) != 256 || !w.From.Equal(w.Changes[0].At) {
			t.Errorf("%d changes and %d probes from %v; want the newest 128 and 256, from the first of them", len(w.Changes), len(w.Probes), w.From)
		}
	})
}

func TestAConsumerThatIsRemovedTakesItsPastAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		hub.Consumers([]live.Consumer{{Name: "old"}, {Name: "kept"}})
		hub.Breaker(change("old", "closed", "open"))
		hub.Breaker(change("kept", "closed", "open"))
		hub.Consumers([]live.Consumer{{Name: "kept"}})
		past := history(t, hub)
		if _, there := past["old"]; there || len(past["kept"].Changes) != 1 {
			t.Errorf("remembered are %v; want kept alone", past)
		}
		// Its name again is another consumer.
		hub.Consumers([]live.Consumer{{Name: "old"}})
		if h := history(t, hub)["old"]; len(h.Changes) != 0 {
			t.Errorf("the new consumer begins with %+v", h.Changes)
		}
	})
}

// Each probe reaches each client once: as history or as an event.
func TestNothingIsToldTwiceOrNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		go func() {
			for i := range 200 {
				hub.Probe(live.Probe{Consumer: "dispatch", LatencyMS: float64(i), At: time.Now()})
				time.Sleep(time.Millisecond)
			}
		}()
		var streams []<-chan event
		for range 20 {
			time.Sleep(10 * time.Millisecond)
			streams = append(streams, watch(t, client))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, s := range streams {
			var told []float64
			for _, e := range ready(s) {
				switch e.name {
				case "history":
					var h live.History
					e.decode(t, &h)
					for _, p := range h.Probes {
						told = append(told, p.LatencyMS)
					}
				case "probe":
					var p live.Probe
					e.decode(t, &p)
					told = append(told, p.LatencyMS)
				}
			}
			for want, got := range told {
				if got != float64(want) {
					t.Fatalf("client %d was told %v at place %d", i, got, want)
				}
			}
			if len(told) != 200 {
				t.Errorf("client %d was told %d of 200 probes", i, len(told))
			}
		}
	})
}

func TestAForgottenDeviceLeavesAndMayComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		hub.Position(at("van-1", 1, 1))
		hub.Forget("van-1")
		time.Sleep(time.Second)
		synctest.Wait()
		got := ready(events)
		if list := only(got, "devices"); len(list) != 0 {
			t.Errorf("a forgotten device was sent: %v", list)
		}
		if list := only(got, "forgotten"); len(list) != 1 || list[0].data != `{"device":"van-1"}` {
			t.Errorf("told as forgotten: %v", list)
		}
		hub.Position(at("van-1", 1, 0)) // older than what was forgotten
		time.Sleep(time.Second)
		synctest.Wait()
		if list := only(ready(events), "devices"); len(list) != 1 {
			t.Errorf("when it sends again: %v", list)
		}
	})
}

// A partition that is busy keeps back what it knows, but nothing else.
func TestAStreamDoesNotWaitForTheKnownDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		hub := live.New(live.Config{Positions: func(ctx context.Context) iter.Seq[[]live.Position] {
			return func(yield func([]live.Position) bool) {
				if !yield([]live.Position{at("early", 1, 1)}) {
					return
				}
				select {
				case <-busy:
					yield([]live.Position{at("private", 1, 1), at("late", 1, 1)})
				case <-ctx.Done():
				}
			}
		}})
		events := watch(t, serve(t, hub, nil))
		hub.Consumers(nil)
		hub.Forget("private")
		time.Sleep(time.Second)
		synctest.Wait()
		got := ready(events)
		if devices := only(got, "devices"); len(only(got, "hello")) != 1 || len(only(got, "consumers")) != 1 || len(devices) != 1 {
			t.Fatalf("meanwhile came %v; want hello, consumers and the first device", got)
		}
		close(busy)
		synctest.Wait()
		late := only(ready(events), "devices")
		if len(late) != 1 || late[0].data != `{"d":[["late",1.000000,8.500000,1,null]]}` {
			t.Errorf("in the end came %v; want what is known, without what was forgotten meanwhile", late)
		}

		// A client that goes first ends the gathering: the bubble would not end.
		busy = make(chan struct{})
		watch(t, serve(t, hub, nil))
	})
}

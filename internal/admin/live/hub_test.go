package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

// rows is the body of a `devices` event.
type rows struct {
	D [][]any `json:"d"`
}

func at(device string, lat float64, ts int64) live.Position {
	return live.Position{Device: device, Lat: lat, Lon: 8.5, TS: ts, Heading: math.NaN()}
}

// known is what a hub is told of all devices.
func known(list ...live.Position) func(context.Context) iter.Seq[[]live.Position] {
	return func(context.Context) iter.Seq[[]live.Position] { return slices.Values([][]live.Position{list}) }
}

func TestAStreamBeginsWithHelloAndWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now().UTC()
		hub := live.New(live.Config{Version: "v1", Namespace: "fleet", Started: started,
			Positions: known(
				live.Position{Device: `a"b.ü`, Lat: -47.1234567, Lon: 180, TS: 1700000000123, Heading: 271.4},
				live.Position{Device: "parked", TS: 5, Heading: math.NaN(), Age: 90 * time.Second},
				live.Position{Device: "gone", TS: 5, Heading: math.NaN(), Age: time.Hour},
			)})
		events := watch(t, serve(t, hub, nil))
		synctest.Wait()
		got := ready(events)
		if len(got) != 2 || got[0].name != "hello" || got[1].name != "devices" {
			t.Fatalf("got %v; want hello, then devices", got)
		}
		var hello struct {
			Version, Namespace string
			Started, Now       time.Time
			GoneAfterS         float64 `json:"gone_after_s"`
		}
		got[0].decode(t, &hello)
		if hello.Version != "v1" || hello.Namespace != "fleet" || !hello.Started.Equal(started) || !hello.Now.Equal(time.Now()) || hello.GoneAfterS != 3600 {
			t.Errorf("hello = %+v", hello)
		}
		if want := `{"d":[["a\"b.ü",-47.123457,180.000000,1700000000123,271],["parked",0.000000,0.000000,5,null,90]]}`; got[1].data != want {
			t.Errorf("devices = %s\nwant      %s", got[1].data, want)
		}
	})
}

func TestOnlyTheNewestPositionOfADeviceIsSentFourTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		for i := range 1000 { // a fix every millisecond
			hub.Position(at("van-1", float64(i)/1000, int64(i)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		batches := only(ready(events), "devices")
		if n := len(batches); n < 4 || n > 5 {
			t.Errorf("%d batches in 1.3 s; want 4 or 5", n)
		}
		var last rows
		batches[len(batches)-1].decode(t, &last)
		if len(last.D) != 1 || last.D[0][3] != 999.0 || last.D[0][4] != nil {
			t.Errorf("the last batch is %v; want the fix with ts 999 and no heading", last.D)
		}

		// A late fix must not move it back, and what is still isn't sent again.
		hub.Position(at("van-1", 0, 5))
		time.Sleep(time.Second)
		synctest.Wait()
		if again := only(ready(events), "devices"); len(again) != 0 {
			t.Errorf("sent again: %v", again)
		}
	})
}

func TestAClientThatComesLaterGetsWhatOthersMissNothingOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		first := watch(t, client)
		hub.Positions([]live.Position{at("a", 1, 1), at("b", 2, 1)})
		time.Sleep(time.Second)
		second := watch(t, client)
		hub.Position(at("b", 3, 2))
		time.Sleep(time.Second)
		synctest.Wait()
		count := func(list []event) (n int) {
			for _, e := range only(list, "devices") {
				var r rows
				e.decode(t, &r)
				n += len(r.D)
			}
			return n
		}
		if n := count(ready(first)); n != 3 {
			t.Errorf("the first client got %d positions; want 3", n)
		}
		if n := count(ready(second)); n != 1 {
			t.Errorf("the second client got %d positions; want 1", n)
		}
	})
}

func TestTriggersAndNoticesArriveInOrderWithinABeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		synctest.Wait()
		ready(events)
		now := time.Now()
		hub.Trigger(live.Trigger{ID: "T1", At: now, Device: "van", Fence: "depot", Transition: "enter", Consumers: []string{"dispatch"}, Initial: true})
		hub.Breaker(live.Breaker{Consumer: "dispatch", At: now, From: "closed", To: "open", Reason: "p99", Text: "P99 is 812 ms, the limit 500 ms", Rung: 1, Until: &now})
		hub.Probe(live.Probe{Consumer: "dispatch", At: now, Verdict: "healthy", LatencyMS: 12.5})
		hub.Fences()
		hub.Fences()
		hub.Trigger(live.Trigger{ID: "T2", Transition: "exit"})
		time.Sleep(130 * time.Millisecond)
		synctest.Wait()
		var names []string
		got := ready(events)
		for _, e := range got {
			names = append(names, e.name)
		}
		if fmt.Sprint(names) != "[breaker probe trigger trigger fences]" {
			t.Fatalf("events: %v", names)
		}
		stamp, err := json.Marshal(now)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"id":"T1","at":` + string(stamp) + `,"device":"van","fence":"depot","transition":"enter","consumers":["dispatch"],"initial":true}`; got[2].data != want {
			t.Errorf("trigger = %s\nwant      %s", got[2].data, want)
		}
	})
}

func TestAFloodOfTriggersDropsTheOldestAndSaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		synctest.Wait()
		ready(events)
		for i := range 1000 {
			hub.Trigger(live.Trigger{ID: strconv.Itoa(i)})
			hub.Probe(live.Probe{Consumer: strconv.Itoa(i)})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		got := ready(events)
		var dropped struct{ Triggers, Notices int }
		only(got, "dropped")[0].decode(t, &dropped)
		triggers := only(got, "trigger")
		if dropped.Triggers+len(triggers) != 1000 || dropped.Notices+len(only(got, "probe")) != 1000 {
			t.Errorf("dropped %+v of 1000 each, got %d triggers", dropped, len(triggers))
		}
		var last live.Trigger
		triggers[len(triggers)-1].decode(t, &last)
		if last.ID != "999" || len(only(got, "dropped")) != 1 {
			t.Errorf("the last trigger is %s; want 999, and one report of drops", last.ID)
		}
	})
}

func TestConsumersAreReplacedAndSentTwiceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		for i := range 100 {
			hub.Consumers([]live.Consumer{{Name: "dispatch", State: "closed", DeliveredTotal: uint64(i)}})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		got := only(ready(events), "consumers")
		if len(got) != 2 && len(got) != 3 {
			t.Errorf("%d snapshots in 1.5 s; want 2 or 3", len(got))
		}
		var last struct{ Consumers []live.Consumer }
		got[len(got)-1].decode(t, &last)
		if len(last.Consumers) != 1 || last.Consumers[0].DeliveredTotal != 99 {
			t.Errorf("the last snapshot is %+v", last)
		}
	})
}

func TestAQuietStreamIsKeptAlivePastTheServersReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, func(s *http.Server) { s.ReadTimeout = time.Second }))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		beats := 0
		for _, e := range ready(events) {
			if e.name == "" {
				beats++
			}
		}
		if beats != 4 {
			t.Errorf("%d heartbeats in a minute; want 4", beats)
		}
		hub.Trigger(live.Trigger{ID: "T"})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ready(events); len(got) != 1 || got[0].name != "trigger" {
			t.Errorf("after a quiet minute got %v; want the trigger", got)
		}
	})
}

func TestAClientThatReadsNothingIsCutOffAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		response, err := client.Get("http://tripline/api/v1/live")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		start := time.Now()
		for i := 0; hub.Watched(); i++ {
			if time.Since(start) > time.Minute {
				t.Fatal("still watched after a minute without a read")
			}
			before := time.Now()
			for k := range 200 {
				hub.Position(at("device-"+strconv.Itoa(k), 1, int64(i)))
				hub.Trigger(live.Trigger{ID: "T"})
			}
			if took := time.Since(before); took != 0 {
				t.Fatalf("publishing waited %v of virtual time for the client", took)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

func TestTheLastOneOutStopsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		if hub.Watched() {
			t.Fatal("watched before anybody came")
		}
		for range 3 {
			response, err := client.Get("http://tripline/api/v1/live")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !hub.Watched() {
				t.Fatal("not watched while a stream is open")
			}
			response.Body.Close()
			time.Sleep(time.Second)
			synctest.Wait()
			if hub.Watched() {
				t.Fatal("watched after the stream was closed")
			}
		}
	})
}

func TestTheSixtyFifthClientIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		for range 64 {
			watch(t, client)
		}
		response, err := client.Get("http://tripline/api/v1/live")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
			t.Errorf("status %d, Retry-After %q; want 503 and a time", response.StatusCode, response.Header.Get("Retry-After"))
		}
	})
}

// Publishers, comers and goers at once: for the race detector, and to see
// that each client ends with the last position of every device.
func TestManyPublishersAndClientsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		client := serve(t, hub, nil)
		var streams []<-chan event
		for range 4 {
			streams = append(streams, watch(t, client))
		}
		var publishers sync.WaitGroup
		for p := range 8 {
			publishers.Go(func() {
				for i := range 500 {
					hub.Position(at(fmt.Sprintf("d%d-%d", p, i%50), float64(i), int64(i)))
					hub.Trigger(live.Trigger{ID: "T"})
					hub.Consumers(nil)
					hub.Fences()
					if i%50 == 0 {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		publishers.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		for _, s := range streams {
			newest := map[string]float64{}
			for _, e := range only(ready(s), "devices") {
				var r rows
				e.decode(t, &r)
				for _, row := range r.D {
					newest[row[0].(string)] = row[3].(float64)
				}
			}
			if len(newest) != 400 {
				t.Errorf("a client knows %d devices; want 400", len(newest))
			}
			for device, ts := range newest {
				if ts < 450 {
					t.Errorf("%s ended at ts %v", device, ts)
				}
			}
		}
	})
}

func TestFiftyThousandDevicesAreSentInBoundedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := live.New(live.Config{})
		events := watch(t, serve(t, hub, nil))
		for i := range 50_000 {
			hub.Position(at("device-"+strconv.Itoa(i), 1, 1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		total := 0
		for _, e := range only(ready(events), "devices") {
			var r rows
			e.decode(t, &r)
			if len(r.D) > 5000 {
				t.Errorf("an event holds %d devices", len(r.D))
			}
			total += len(r.D)
		}
		if total != 50_000 {
			t.Errorf("got %d devices", total)
		}
	})
}

func BenchmarkPositionUnwatched(b *testing.B) {
	hub := live.New(live.Config{})
	p := at("van-1", 1, 1)
	b.ReportAllocs()
	for b.Loop() {
		hub.Position(p)
	}
}

func BenchmarkTriggerUnwatched(b *testing.B) {
	hub := live.New(live.Config{})
	trigger := live.Trigger{ID: "T", Consumers: []string{"dispatch"}}
	b.ReportAllocs()
	for b.Loop() {
		hub.Trigger(trigger)
	}
}

package geofence_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// What a tracker is told by handles it must judge as what it is told by ids,
// over devices that are forgotten, evicted and come back.
func TestHandlesChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	cfg := geofence.Config{
		Dwell: []time.Duration{20 * time.Second}, SilentAfter: 40 * time.Second, ForgetAfter: time.Minute,
		Reorder: 2 * time.Second, Cross: true,
	}
	ix := mustIndex(t, mustParse(t, `{"type":"FeatureCollection","features":[
		{"type":"Feature","id":"a","properties":{},"geometry":{"type":"Polygon","coordinates":[[[0,0],[0.01,0],[0.01,0.01],[0,0.01],[0,0]]]}},
		{"type":"Feature","id":"b","properties":{"radius_m":500},"geometry":{"type":"Point","coordinates":[0.01,0.01]}}]}`)...)
	byID, byHandle := geofence.NewTracker(ix, cfg), geofence.NewTracker(ix, cfg)
	handles := map[string]*geofence.Handle{}
	now, told := int64(1_700_000_000_000), 0
	for i := range 20_000 {
		now += rng.Int64N(3000)
		device := fmt.Sprint("d", rng.IntN(30))
		if handles[device] == nil {
			handles[device] = &geofence.Handle{}
		}
		if rng.IntN(100) == 0 && byID.Forget(device) != byHandle.Forget(device) {
			t.Fatalf("step %d: only one of the trackers knew %s", i, device)
		}
		want := byID.Advance(now, nil)
		if got := byHandle.Advance(now, nil); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: timers: %v, by id %v", i, got, want)
		}
		told += len(want)
		fix := geofence.Fix{
			Device: device, Lat: rng.Float64() * 0.02, Lon: rng.Float64() * 0.02,
			TS: now - rng.Int64N(4000), Stored: now, Seq: uint64(i + 1),
		}
		want, wantResult := byID.Track(&fix, now, nil)
		got, result := byHandle.TrackBy(handles[device], &fix, now, nil)
		if result != wantResult || !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %v %v, by id %v %v", i, result, got, wantResult, want)
		}
		told += len(want)
	}
	if told < 1000 {
		t.Errorf("only %d transitions: the journeys test little", told)
	}
}

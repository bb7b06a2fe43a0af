package geofence_test

import (
	"fmt"
	"time"

	"github.com/tripline/tripline/geofence"
)

const depots = `{
  "type": "FeatureCollection",
  "features": [
    {"type": "Feature", "id": "depot",
     "properties": {"name": "Depot North", "radius_m": 150, "dwell": ["10m"]},
     "geometry": {"type": "Point", "coordinates": [13.4050, 52.5200]}},
    {"type": "Feature", "id": "yard",
     "properties": {"exit_buffer_m": 20},
     "geometry": {"type": "Polygon", "coordinates": [[
       [13.42, 52.51], [13.43, 52.51], [13.43, 52.52], [13.42, 52.52], [13.42, 52.51]]]}}
  ]
}`

func Example() {
	fences, err := geofence.ParseFences([]byte(depots))
	if err != nil {
		fmt.Println(err)
		return
	}
	index, err := geofence.NewIndex(fences...)
	if err != nil {
		fmt.Println(err)
		return
	}
	tracker := geofence.NewTracker(index, geofence.Config{})

	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMilli()
	var told []geofence.Transition
	for i, at := range [][2]float64{{52.53, 13.41}, {52.5201, 13.4051}, {52.515, 13.425}} {
		ts := start + int64(i)*60_000
		fix := geofence.Fix{Device: "van-7", Lat: at[0], Lon: at[1], TS: ts, Stored: ts}
		told, _ = tracker.Track(&fix, ts, told)
	}
	for _, tr := range told {
		fmt.Println(time.UnixMilli(tr.At).UTC().Format(time.TimeOnly), tr.Device, tr.Kind, tr.Fence.ID)
	}
	// Output:
	// 08:01:00 van-7 enter depot
	// 08:02:00 van-7 exit depot
	// 08:02:00 van-7 enter yard
}

// The caller drives the time: Next says when there is something to do.
func ExampleTracker_Advance() {
	fences, _ := geofence.ParseFences([]byte(depots))
	index, _ := geofence.NewIndex(fences...)
	tracker := geofence.NewTracker(index, geofence.Config{})

	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMilli()
	tracker.Track(&geofence.Fix{Device: "van-7", Lat: 52.52, Lon: 13.405, TS: now, Stored: now}, now, nil)

	// The van parks and sends nothing more.
	next, _ := tracker.Next()
	for _, tr := range tracker.Advance(next, nil) {
		fmt.Println(time.UnixMilli(tr.At).UTC().Format(time.TimeOnly), tr.Kind, tr.Fence.Name, "after", tr.Dwell)
	}
	// Output:
	// 08:10:00 dwell Depot North after 10m0s
}

// A change of the fences is visible at once to whoever takes a snapshot; a
// tracker takes it when it is told to, and judges those inside again.
func ExampleTracker_Refence() {
	fences, _ := geofence.ParseFences([]byte(depots))
	index, _ := geofence.NewIndex(fences...)
	tracker := geofence.NewTracker(index, geofence.Config{})
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMilli()
	tracker.Track(&geofence.Fix{Device: "van-7", Lat: 52.52, Lon: 13.405, TS: now, Stored: now}, now, nil)

	if err := index.Apply(geofence.Change{Delete: []string{"depot"}}); err != nil {
		fmt.Println(err)
	}
	for _, tr := range tracker.Refence(now+5000, nil) {
		fmt.Println(tr.Kind, tr.Fence.ID, tr.Reason)
	}
	// Output:
	// exit depot fence_deleted
}

// A presence that was saved goes on in another tracker as if nothing had
// happened.
func ExampleTracker_Restore() {
	fences, _ := geofence.ParseFences([]byte(depots))
	index, _ := geofence.NewIndex(fences...)
	before := geofence.NewTracker(index, geofence.Config{})
	before.Track(&geofence.Fix{Device: "van-7", Lat: 52.52, Lon: 13.405, TS: 1000, Stored: 1000, Seq: 41}, 1000, nil)
	saved, _ := before.AppendPresence(nil, "van-7")

	after := geofence.NewTracker(index, geofence.Config{})
	if err := after.Restore("van-7", saved, nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println("judged up to", after.Seq("van-7"))
	told, _ := after.Track(&geofence.Fix{Device: "van-7", Lat: 52.53, Lon: 13.41, TS: 9000, Stored: 9000, Seq: 42}, 9000, nil)
	for _, tr := range told {
		fmt.Println(tr.Kind, tr.Fence.ID, "after", time.Duration(tr.At-tr.EnteredAt)*time.Millisecond)
	}
	// Output:
	// judged up to 41
	// exit depot after 8s
}

func ExampleParseFences() {
	_, err := geofence.ParseFences([]byte(`{"type": "Feature", "id": "harbour", "properties": {},
  "geometry": {"type": "Polygon", "coordinates": [[
    [10.0, 53.5], [53.5, 100.1], [10.1, 53.6], [10.0, 53.5]]]}}`))
	fmt.Println(err)
	// Output:
	// 3:19: fence "harbour": latitude 100.1 is not in -90..90: looks like lat,lon swapped
}

func ExampleSnapshot_Match() {
	fences, _ := geofence.ParseFences([]byte(depots))
	index, _ := geofence.NewIndex(fences...)
	var hits []*geofence.Fence // used again, so that nothing is allocated
	hits = index.Snapshot().Match(52.515, 13.425, hits[:0])
	for _, f := range hits {
		fmt.Println(f.ID)
	}
	// Output:
	// yard
}

package geofence_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// The cases G1 to G16 are faults that users of other geofencing servers have
// reported; each has its test here, by its code. Most are journeys.

func TestG1_JitterAtTheEdge(t *testing.T) {
	journey(t, "g01-jitter-buffer")
	journey(t, "g01-jitter-confirm")
}

func TestG2_CrossBetweenTwoFixes(t *testing.T) { journey(t, "g02-cross") }

func TestG3_LateFixes(t *testing.T) {
	journey(t, "g03-late")
	journey(t, "g03-reorder")
}

func TestG4_Duplicates(t *testing.T) { journey(t, "g04-duplicate") }

func TestG5_ClockAhead(t *testing.T) { journey(t, "g05-future") }

func TestG6_Restart(t *testing.T) { journey(t, "g06-restart") }

func TestG7_FirstFixInside(t *testing.T) {
	journey(t, "g07-initial")
	journey(t, "g07-initial-silent")
}

func TestG8_DwellPendingAtRestart(t *testing.T) { journey(t, "g08-dwell-restart") }

func TestG9_FenceEditedWhileInside(t *testing.T) {
	journey(t, "g09-fence-edited")
	journey(t, "g09-fence-moved")
	journey(t, "g09-fence-edited-while-down")
}

func TestG10_Antimeridian(t *testing.T) {
	journey(t, "g10-antimeridian")
	fences := mustParse(t, `{"type":"FeatureCollection","features":[`+
		polygon("east", `[[[170,-5],[180,-5],[180,5],[170,5],[170,-5]]]`)+","+
		polygon("west", `[[[-170,-5],[-170,5],[-180,5],[-180,-5],[-170,-5]]]`)+`]}`)
	for _, lon := range []float64{180, -180} { // one meridian
		if n := len(mustIndex(t, fences...).Snapshot().Match(0, lon, nil)); n != 2 {
			t.Errorf("at longitude %v it is in %d fences that touch there, want 2", lon, n)
		}
	}
}

func feature(id, properties, geometry string) string {
	return fmt.Sprintf(`{"type":"Feature","id":%q,"properties":%s,"geometry":%s}`, id, properties, geometry)
}

func polygon(id, coordinates string) string {
	return feature(id, "{}", `{"type":"Polygon","coordinates":`+coordinates+`}`)
}

func TestG11_BadRings(t *testing.T) {
	for _, c := range []struct{ name, coordinates, want string }{
		{"bow-tie", `[[[0,0],[2,2],[2,0],[0,2],[0,0]]]`, "crosses itself at longitude 1, latitude 1"},
		{"lopsided bow-tie", `[[[0,0],[3,1],[3,0],[0,2],[0,0]]]`, "crosses itself"},
		{"a corner pushed through an edge", `[[[0,0],[4,0],[4,4],[2,0],[1,-1],[0,4],[0,0]]]`, "crosses itself"},
		{"the same, the other way", `[[[0,0],[0,4],[1,-1],[2,0],[4,4],[4,0],[0,0]]]`, "crosses itself"},
		{"through the middle of an edge", `[[[2,-1],[2,0],[3,3],[4,3],[4,0],[0,0],[0,-1],[2,-1]]]`, "crosses itself at longitude 2, latitude 0"},
		{"the same, the other way", `[[[0,0],[4,0],[4,3],[3,3],[2,0],[2,-1],[0,-1],[0,0]]]`, "crosses itself at longitude 2, latitude 0"},
		{"unclosed ring", `[[[0,0],[1,0],[1,1],[0,1]]]`, "not closed: it begins at [0,0] and ends at [0,1]"},
		{"hole outside its shell", `[[[0,0],[1,0],[1,1],[0,1],[0,0]],[[5,5],[6,5],[6,6],[5,5]]]`, "hole is outside its shell"},
		{"hole across its shell", `[[[0,0],[2,0],[2,2],[0,2],[0,0]],[[1,1],[3,1],[3,1.5],[1,1.5],[1,1]]]`, "crosses itself"},
		{"empty polygon", `[]`, "polygon is empty"},
		{"empty ring", `[[]]`, "ring is empty"},
		{"three positions", `[[[0,0],[1,0],[0,0]]]`, "3 positions, but at least 4"},
		{"a line there and back", `[[[0,0],[1,1],[2,2],[0,0]]]`, "no area"},
		{"one point, four times", `[[[1,1],[1,1],[1,1],[1,1]]]`, "no area"},
		{"a position with one number", `[[[0],[1,0],[1,1],[0]]]`, "has 1 numbers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := parseError(t, "{\"type\":\"FeatureCollection\",\n\"features\":[\n"+polygon("bad-one", c.coordinates)+"]}")
			if e.ID != "bad-one" || e.Index != 0 || e.Line != 3 || e.Column < 50 {
				t.Errorf("the error doesn't name the place: %+v", e)
			}
			if !strings.Contains(e.Msg, c.want) {
				t.Errorf("%q doesn't say %q", e.Msg, c.want)
			}
		})
	}
}

// parseError parses what has to be refused and returns its only problem.
func parseError(t *testing.T, geojson string) *geofence.FenceError {
	t.Helper()
	fences, err := geofence.ParseFences([]byte(geojson))
	if err == nil || fences != nil {
		t.Fatalf("%d fences and no error from %.200s", len(fences), geojson)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 1 {
		t.Fatalf("want one problem, got: %v", err)
	}
	e, ok := errors.AsType[*geofence.FenceError](err)
	if !ok {
		t.Fatalf("%v is not a FenceError", err)
	}
	return e
}

func TestG11_HugeRings(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 20_000
	}
	small, large := parseRings(t, n/10), parseRings(t, n)
	// By the square of the vertices it would be a hundred times.
	if large > 40*small || large > 20*time.Second {
		t.Errorf("rings of %d vertices took %v, of %d %v", n, large, n/10, small)
	}
}

// parseRings says how long it takes to parse three rings of n vertices.
func parseRings(t *testing.T, n int) time.Duration {
	t.Helper()
	star := func(radius func(i int) float64) string {
		var b strings.Builder
		b.WriteString("[[")
		for i := range n + 1 {
			if i > 0 {
				b.WriteByte(',')
			}
			a := 2 * math.Pi * float64(i%n) / float64(n)
			r := radius(i % n)
			fmt.Fprintf(&b, "[%v,%v]", r*math.Cos(a), r*math.Sin(a))
		}
		return b.String() + "]]"
	}
	start := time.Now()
	mustParse(t, polygon("round", star(func(int) float64 { return 1 })))
	mustParse(t, polygon("comb", star(func(i int) float64 { return 1 + float64(i%2) })))
	// One vertex on the wrong side of the star.
	e := parseError(t, polygon("crossed", star(func(i int) float64 {
		if i == n/2 {
			return -3
		}
		return 1 + float64(i%2)
	})))
	if !strings.Contains(e.Msg, "crosses itself") {
		t.Error(e)
	}
	return time.Since(start)
}

func TestG12_HolesIslandsAndEdges(t *testing.T) {
	journey(t, "g12-holes")
	shell := `[[0,0],[10,0],[10,10],[0,10],[0,0]]`
	hole := `[[2,2],[8,2],[8,8],[2,8],[2,2]]`
	island := `[[4,4],[6,4],[6,6],[4,6],[4,4]]`
	turned := `[[0,0],[0,10],[10,10],[10,0],[0,0]]`
	for name, f := range map[string]*geofence.Fence{
		"rings of one polygon": mustParse(t, polygon("f", "["+shell+","+hole+","+island+"]"))[0],
		"other winding":        mustParse(t, polygon("f", "["+turned+","+hole+","+island+"]"))[0],
		"two polygons": mustParse(t, feature("f", "{}",
			`{"type":"MultiPolygon","coordinates":[[`+shell+`,`+hole+`],[`+island+`]]}`))[0],
	} {
		for _, c := range []struct {
			lat, lon float64
			want     bool
			what     string
		}{
			{1, 1, true, "between shell and hole"}, {3, 3, false, "in the hole"}, {5, 5, true, "on the island"},
			{0, 5, true, "on the shell's edge"}, {0, 0, true, "on its vertex"}, {10, 10, true, "on another"},
			{2, 5, true, "on the hole's edge"}, {8, 8, true, "on its vertex"},
			{4, 5, true, "on the island's edge"}, {3, 10.001, false, "outside"},
		} {
			if got := f.Contains(c.lat, c.lon); got != c.want {
				t.Errorf("%s: %s: inside is %v", name, c.what, got)
			}
		}
	}
}

// A point on an edge or a vertex that fences share is inside each of them,
// also where no float is exactly on the line.
func TestG12_SharedEdges(t *testing.T) {
	fences := mustParse(t, `{"type":"FeatureCollection","features":[`+
		polygon("left", `[[[0,0],[0.1,0],[0.3,0.7],[0,0.7],[0,0]]]`)+","+
		polygon("right", `[[[0.1,0],[1,0],[1,0.7],[0.3,0.7],[0.1,0]]]`)+`]}`)
	for i := range 1000 {
		y := 0.7 * float64(i) / 999
		x := 0.1 + (0.3-0.1)*float64(i)/999
		n := 0
		for _, f := range fences {
			if f.Contains(y, x) {
				n++
			}
		}
		if n == 0 {
			t.Fatalf("%v,%v fell between two fences that share an edge", y, x)
		}
	}
	for _, p := range [][2]float64{{0, 0.1}, {0.7, 0.3}} {
		if !fences[0].Contains(p[0], p[1]) || !fences[1].Contains(p[0], p[1]) {
			t.Errorf("the shared vertex %v is not inside both", p)
		}
	}
}

func TestG13_BadCoordinates(t *testing.T) {
	ring := func(first string) string {
		return polygon("bad", "[["+first+",[1,0],[1,1],"+first+"]]")
	}
	for _, c := range []struct{ name, geojson, want string }{
		{"swapped", ring("[39.9,116.4]"), "latitude 116.4 is not in -90..90: looks like lat,lon swapped"},
		{"latitude 95", ring("[100,95]"), "latitude 95 is not in -90..90"},
		{"longitude 181", ring("[181,0]"), "longitude 181 is not in -180..180"},
		{"NaN", ring("[NaN,0]"), `'N' where a value should be`},
		{"infinite", ring("[1e999,0]"), "is not a finite number"},
		{"only one of lat and lon", ring("[1]"), "a position needs longitude and latitude"},
		{"null", ring("[null,0]"), "'n' where a number should be"},
		{"a string", ring(`["1",0]`), "where a number should be"},
		{"circle without radius", feature("bad", "{}", `{"type":"Point","coordinates":[0,0]}`), "needs the property radius_m"},
		{"circle of radius 0", feature("bad", `{"radius_m":0}`, `{"type":"Point","coordinates":[0,0]}`), "radius_m: more than 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := parseError(t, c.geojson); !strings.Contains(e.Msg, c.want) {
				t.Errorf("%q doesn't say %q", e.Msg, c.want)
			}
		})
	}
}

func TestG14_ManyFencesOnOnePoint(t *testing.T) {
	journey(t, "g14-concentric")
	var all []string
	for i := range 50 {
		all = append(all, feature(fmt.Sprintf("f%02d", 49-i), `{"radius_m":100}`, `{"type":"Point","coordinates":[10,50]}`))
	}
	ix := mustIndex(t, mustParse(t, `{"type":"FeatureCollection","features":[`+strings.Join(all, ",")+`]}`)...)
	trs, _ := geofence.NewTracker(ix, geofence.Config{}).Track(
		&geofence.Fix{Device: "van", Lat: 50, Lon: 10, TS: 1}, 1, nil)
	if len(trs) != 50 {
		t.Fatalf("%d transitions, want one for each of 50 fences", len(trs))
	}
	for i, tr := range trs {
		if want := fmt.Sprintf("f%02d", i); tr.Fence.ID != want || tr.Kind != geofence.Enter {
			t.Errorf("transition %d is %v of %s, want enter of %s", i, tr.Kind, tr.Fence.ID, want)
		}
	}
}

func TestG15_Accuracy(t *testing.T) { journey(t, "g15-accuracy") }

// G16, one filter for all paths: what a consumer's match sees of a transition
// is complete on every path that makes one.
func TestG16_EveryPathTellsFenceAndFix(t *testing.T) {
	fences := mustParse(t, `{"type":"FeatureCollection","features":[`+
		feature("gate", `{"name":"Gate","tags":["door"],"radius_m":50,"dwell":"10s","floor":3}`, `{"type":"Point","coordinates":[0,0]}`)+`]}`)
	ix := mustIndex(t, fences...)
	tracker := geofence.NewTracker(ix, geofence.Config{Cross: true, Inside: true})
	var trs []geofence.Transition
	fix := func(ts int64, lon float64) {
		trs, _ = tracker.Track(&geofence.Fix{
			Device: "van", Lon: lon, TS: ts, Stored: ts, Has: geofence.HasSpeed, Speed: 7, Props: []byte(`{"k":1}`),
		}, ts, trs)
	}
	fix(1000, -0.01)
	fix(2000, 0.01) // cross
	fix(3000, 0)    // enter, inside
	trs = tracker.Advance(20_000, trs)
	fix(21_000, 0.01) // exit
	fix(22_000, 0)
	if err := ix.Apply(geofence.Change{Delete: []string{"gate"}}); err != nil {
		t.Fatal(err)
	}
	trs = tracker.Refence(23_000, trs)
	var kinds []string
	for _, tr := range trs {
		kinds = append(kinds, tr.Kind.String())
		if tr.Fence.Name != "Gate" || len(tr.Fence.Tags) != 1 || !strings.Contains(string(tr.Fence.Props), `"floor":3`) {
			t.Errorf("%v: the fence is not complete: %+v", tr.Kind, tr.Fence)
		}
		if tr.Fix.Has != geofence.HasSpeed || tr.Fix.Speed != 7 || string(tr.Fix.Props) != `{"k":1}` || tr.Fix.Device != "van" {
			t.Errorf("%v: the fix is not complete: %+v", tr.Kind, tr.Fix)
		}
	}
	if got, want := strings.Join(kinds, " "), "cross enter inside dwell exit enter inside exit"; got != want {
		t.Errorf("transitions are %s, want %s", got, want)
	}
}

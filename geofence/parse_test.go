package geofence_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

const square = `{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1],[0,0]]]}`

// Files as people have them, where what they mean is clear.
func TestLoaderTakes(t *testing.T) {
	for _, c := range []struct{ name, geojson, inside string }{
		{"one feature", feature("a", "{}", square), "0.5,0.5"},
		{"no properties", feature("a", "null", square), "0.5,0.5"},
		{"a byte-order mark", "\xEF\xBB\xBF" + feature("a", "{}", square), "0.5,0.5"},
		{"a numeric id", `{"type":"Feature","id":7,"properties":{},"geometry":` + square + `}`, "0.5,0.5"},
		{"an id among the properties", `{"type":"Feature","properties":{"id":"x"},"geometry":` + square + `}`, "0.5,0.5"},
		{"a null id, and one among the properties", `{"type":"Feature","id":null,"properties":{"id":3},"geometry":` + square + `}`, "0.5,0.5"},
		{"3-D coordinates", polygon("a", `[[[0,0,9],[1,0,9.5],[1,1,8],[0,1,7],[0,0,3]]]`), "0.5,0.5"},
		{"coordinates before the type", feature("a", "{}", `{"coordinates":[[[0,0],[1,0],[1,1],[0,0]]],"type":"Polygon"}`), "0.2,0.5"},
		{"foreign members and a bbox", `{"bbox":[0,0,1,1],"type":"FeatureCollection","made":{"by":["x"]},"features":[` +
			feature("a", "{}", `{"type":"Polygon","bbox":[0,0,1,1],"coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}`) + `]}`, "0.2,0.5"},
		{"crs CRS84", `{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:OGC:1.3:CRS84"}},"features":[` +
			feature("a", "{}", square) + `]}`, "0.5,0.5"},
		{"crs null", `{"type":"FeatureCollection","crs":null,"features":[` + feature("a", "{}", square) + `]}`, "0.5,0.5"},
		{"a collection of one", feature("a", "{}", `{"type":"GeometryCollection","geometries":[`+square+`]}`), "0.5,0.5"},
		{"a collection of polygons", feature("a", "{}", `{"type":"GeometryCollection","geometries":[`+square+
			`,{"type":"MultiPolygon","coordinates":[[[[5,5],[6,5],[6,6],[5,5]]]]}]}`), "5.5,5.7"},
		{"repeated points", polygon("a", `[[[0,0],[0,0],[1,0],[1,1],[1,1],[0,1],[0,0],[0,0]]]`), "0.5,0.5"},
		{"a spike", polygon("a", `[[[0,0],[1,0],[1,1],[0.5,1],[0.5,2],[0.5,1],[0,1],[0,0]]]`), "0.5,0.5"},
		{"a hole by a bridge", polygon("a", `[[[0,0],[9,0],[9,9],[0,9],[0,0],[3,3],[3,6],[6,6],[6,3],[3,3],[0,0]]]`), "1,2"},
		{"a hole that touches its shell", polygon("a", `[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[0,0],[4,2],[2,4],[0,0]]]`), "8,8"},
		{"many lines", feature("a", `{"radius_m":1000}`, `{"type":"MultiLineString","coordinates":[[[0,0],[1,0]],[[5,5],[6,6]]]}`), "5.5,5.5"},
		{"overlapping members", feature("a", "{}", `{"type":"MultiPolygon","coordinates":[[[[0,0],[2,0],[2,2],[0,2],[0,0]]],[[[1,1],[3,1],[3,3],[1,3],[1,1]]]]}`), "1.5,1.5"},
		{"escapes", `{"type":"\u0046eature","\u0069d":"caf\u00e9","properties":{"\u006eame":"x"},"geometry":` + square + `}`, "0.5,0.5"},
		{"exponents", polygon("a", `[[[0e0,0],[1E+0,0],[10e-1,1.0],[0,1],[0,0.0]]]`), "0.5,0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fences := mustParse(t, c.geojson)
			if len(fences) != 1 || fences[0].ID == "" {
				t.Fatalf("%d fences", len(fences))
			}
			var lat, lon float64
			if _, err := fmt.Sscanf(c.inside, "%g,%g", &lat, &lon); err != nil {
				t.Fatal(err)
			}
			if !fences[0].Contains(lat, lon) || fences[0].Contains(-40, 70) {
				t.Errorf("%s is not inside", c.inside)
			}
		})
	}
}

// What is not clear is refused, with the place.
func TestLoaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, geojson, want string }{
		{"nothing", ``, "1:1: the file is empty"},
		{"a byte order mark alone", "\xEF\xBB\xBF \n", "1:1: the file is empty"},
		{"Latin-1", "\n" + strings.Replace(feature("cafe", "{}", square), "cafe", "caf\xE9", 1), "the file is not UTF-8"},
		{"metres", polygon("a", `[[[121000,487000],[122000,487000],[122000,488000],[121000,487000]]]`), "map projection"},
		{"not JSON", "\n\n  no", `3:3: 'n' where '{' should be`},
		{"a list", `[1]`, `1:1: '[' where '{' should be`},
		{"no type", `{"a":1}`, "it has no type"},
		{"a bare geometry", square, `type "Polygon": a fence file is`},
		{"UTF-16", "\xFE\xFF{", "save it as UTF-8"},
		{"two documents", feature("a", "{}", square) + feature("b", "{}", square), "something follows the end"},
		{"cut short", feature("a", "{}", square)[:100], "the file ends where"},
		{"no features", `{"type":"FeatureCollection"}`, "has no features"},
		{"not a feature", `{"type":"FeatureCollection","features":[` + square + `]}`, `feature 0: type "Polygon" where a Feature`},
		{"no id", `{"type":"Feature","properties":{},"geometry":` + square + `}`, "has no id"},
		{"an empty id", feature("", "{}", square), "the id is empty"},
		{"an id that is a list", `{"type":"Feature","id":[1],"properties":{},"geometry":` + square + `}`, "an id is a string or a number"},
		{"a control character in the id", `{"type":"Feature","id":"a\u0007","properties":{},"geometry":` + square + `}`, "control character"},
		{"null geometry", feature("a", "{}", "null"), `fence "a": the feature has no geometry`},
		{"an unknown geometry", feature("a", "{}", `{"type":"Circle","coordinates":[0,0]}`), "Circle is not a geometry"},
		{"MultiPoint", feature("a", `{"radius_m":5}`, `{"type":"MultiPoint","coordinates":[[0,0]]}`), "MultiPoint is not a geometry"},
		{"no coordinates", feature("a", "{}", `{"type":"Polygon"}`), "Polygon: it has no coordinates"},
		{"a mixed collection", feature("a", `{"radius_m":5}`, `{"type":"GeometryCollection","geometries":[`+square+`,{"type":"Point","coordinates":[0,0]}]}`), "of polygons only"},
		{"crs 3857", `{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"EPSG:3857"}},"features":[]}`, "have to be WGS 84"},
		{"a polygon with a radius", feature("a", `{"radius_m":5}`, square), "radius_m is for a Point or a LineString"},
		{"a line without", feature("a", "{}", `{"type":"LineString","coordinates":[[0,0],[1,1]]}`), "needs the property radius_m"},
		{"a line of one point", feature("a", `{"radius_m":5}`, `{"type":"LineString","coordinates":[[0,0]]}`), "at least 2 positions"},
		{"a radius as text", feature("a", `{"radius_m":"5"}`, `{"type":"Point","coordinates":[0,0]}`), "radius_m: a number is needed"},
		{"a negative radius", feature("a", `{"radius_m":-5}`, `{"type":"Point","coordinates":[0,0]}`), "radius_m: -5 is not in 0.."},
		{"a bad dwell", feature("a", `{"dwell":["5 minutes"]}`, square), `"5 minutes" is not a duration such as 5m`},
		{"a dwell of nothing", feature("a", `{"dwell":0}`, square), "is not in 1ms.."},
		{"half a confirm", feature("a", `{"confirm":1.5}`, square), "confirm: a whole number"},
		{"a band upside down", feature("a", `{"min_alt_m":5,"max_alt_m":4}`, square), "min_alt_m 5 is above max_alt_m 4"},
		{"a bad zone", feature("a", `{"active":{"zone":"Mars/Olympus"}}`, square), `"Mars/Olympus" is not an IANA time zone`},
		{"no zone", feature("a", `{"active":{"days":["mon"]}}`, square), "an IANA time zone such as"},
		{"a bad day", feature("a", `{"active":{"zone":"UTC","days":["funday"]}}`, square), `"funday" is not a day`},
		{"bad hours", feature("a", `{"active":{"zone":"UTC","hours":["25:00-26:00"]}}`, square), `"25:00" is not a time of day`},
		{"no hours", feature("a", `{"active":{"zone":"UTC","hours":["08:00-08:00"]}}`, square), "no time at all"},
		{"a typo in the schedule", feature("a", `{"active":{"zone":"UTC","hour":["08:00-09:00"]}}`, square), "active: it looks like"},
		{"tags that aren't", feature("a", `{"tags":"x"}`, square), "tags: a list of strings"},
		{"a ring around the equator", polygon("a", `[[[0,0],[90,5],[180,-5],[-90,5],[0,0]]]`), "which pole it holds is unclear"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parseError(t, c.geojson)
			if _, err := geofence.ParseFences([]byte(c.geojson)); !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q doesn't say %q", err, c.want)
			}
		})
	}
}

// All problems of a file are told, each with its place, and nothing is loaded.
func TestLoaderTellsAllProblems(t *testing.T) {
	file := "\xEF\xBB\xBF" + `{"type":"FeatureCollection","features":[
  {"type":"Feature","id":"good","properties":{},"geometry":` + square + `},
  {"type":"Feature","id":"bad","properties":{"confirm":-1,
    "dwell":"x"},"geometry":{"type":"Polygon","coordinates":[[
      [0,0],[1,0],
      [1,99],[0,0]]]}},
  {"type":"Feature","id":"good","properties":{},"geometry":` + square + `}
]}`
	fences, err := geofence.ParseFences([]byte(file))
	if err == nil || fences != nil {
		t.Fatal("taken")
	}
	var got []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		fe, ok := errors.AsType[*geofence.FenceError](e)
		if !ok {
			t.Fatal(e)
		}
		got = append(got, fmt.Sprintf("%s %d %d:%d", fe.ID, fe.Index, fe.Line, fe.Column))
	}
	want := []string{"bad 1 3:56", "bad 1 4:13", "bad 1 6:7", "good 2 7:3"}
	if !slices.Equal(got, want) {
		t.Errorf("problems at %v, want %v:\n%v", got, want, err)
	}
	if !strings.Contains(err.Error(), "looks like lat,lon swapped") || !strings.Contains(err.Error(), "taken by the feature at 2:3") {
		t.Error(err)
	}
}

// What is written is read as an equal fence.
func TestMarshalFeatureRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	fences := append(worldwide(t, r, 300), randomFences(t, r, 300)...)
	fences = append(fences, mustParse(t, feature("full",
		`{ "name" : "Full", "tags":["a","b"], "x": {"y":[1, 2]}, "dwell":["90s",300], "confirm":2, "exit_buffer_m":0,
		"max_accuracy_m":0, "min_alt_m":-5, "max_alt_m":1e3, "z":"<>&é", "active":[{"zone":"Europe/Paris","days":["sat-mon"],"hours":["22:00-06:00"]}]}`, square))...)
	if f := fences[len(fences)-1]; string(f.Props) != `{"name":"Full","tags":["a","b"],"x":{"y":[1,2]},"z":"<>&é"}` {
		t.Errorf("props are %s", f.Props)
	}
	for _, f := range fences {
		b, err := f.MarshalFeature()
		if err != nil {
			t.Fatal(err)
		}
		g := mustParse(t, string(b))[0]
		again, err := g.MarshalFeature()
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("%v\n%s\n%s", err, b, again)
		}
		if f.Digest() != g.Digest() || g.WithRevision(7).Digest() != g.Digest() || g.Revision != 0 {
			t.Fatalf("digests differ: %s", b)
		}
		if f.Name != g.Name || !slices.Equal(f.Tags, g.Tags) || !bytes.Equal(f.Props, g.Props) {
			t.Fatalf("%+v is not %+v", g, f)
		}
		for range 100 {
			lat, lon := randomPoint(r)
			if f.Contains(lat, lon) != g.Contains(lat, lon) {
				t.Fatalf("%v,%v differs in %s", lat, lon, b)
			}
		}
	}
}

// Rings over 180 degrees and around a pole.
func TestRingsAroundTheEarth(t *testing.T) {
	type place struct{ lat, lon float64 }
	for _, c := range []struct {
		name, coordinates string
		in, out           []place
	}{
		{
			"over 180", `[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]`,
			[]place{{0, 175}, {0, -175}, {0, 180}, {0, -180}, {10, 170}, {-10, -170}},
			[]place{{0, 169}, {0, -169}, {0, 0}, {11, 180}},
		},
		{
			"over 180 with a hole", `[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]],[[-179,-1],[-177,-1],[-177,1],[-179,1],[-179,-1]]]`,
			[]place{{0, 175}, {0, 179.5}, {0, -179}}, []place{{0, -178}, {0, 0}},
		},
		{
			"written twice at 180", `[[[175,-10],[180,-10],[-180,-10],[-175,-10],[-175,10],[-180,10],[180,10],[175,10],[175,-10]]]`,
			[]place{{0, 178}, {0, -178}, {0, 180}}, []place{{0, 0}, {0, 174}},
		},
		{
			"all the world", `[[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]]]`,
			[]place{{0, 0}, {90, 0}, {-90, 50}, {0, 180}}, nil,
		},
		{
			"Antarctica to the edge of the map", `[[[-180,-90],[-180,-70],[-60,-65],[60,-65],[180,-70],[180,-90],[-180,-90]]]`,
			[]place{{-80, 0}, {-90, 10}, {-75, 180}, {-69.8, -170}}, []place{{-60, 0}, {-60, 180}, {80, 0}},
		},
		{
			"around the north pole", `[[[0,70],[90,70],[180,70],[-90,70],[0,70]]]`,
			[]place{{80, 0}, {90, 33}, {71, 180}, {71, -180}, {71, -1}, {70, 45}}, []place{{69, 0}, {69, 180}, {-80, 0}},
		},
		{
			"around the south pole, the other way", `[[[10,-60],[-80,-70],[-170,-60],[100,-70],[10,-60]]]`,
			[]place{{-89, 0}, {-75, 10}, {-75, 180}}, []place{{-50, 10}, {89, 0}},
		},
	} {
		f := mustParse(t, polygon("f", c.coordinates))[0]
		s := mustIndex(t, f).Snapshot()
		for i, p := range append(c.in, c.out...) {
			want := i < len(c.in)
			if got := f.Contains(p.lat, p.lon); got != want {
				t.Errorf("%s: %v is inside: %v", c.name, p, got)
			}
			if got := len(s.Match(p.lat, p.lon, nil)) == 1; got != want {
				t.Errorf("%s: %v is found: %v", c.name, p, got)
			}
		}
	}
}

// A schedule in a zone whose clock is put forward and back.
func TestScheduleOverClockChanges(t *testing.T) {
	fences := mustParse(t, feature("night", `{"radius_m":100,"active":{"zone":"Europe/Berlin","days":["sat-sun"],"hours":["22:00-02:30"]}}`,
		`{"type":"Point","coordinates":[13,52]}`))
	exitAt := func(enter string) string {
		ts, err := time.Parse(time.RFC3339, enter)
		if err != nil {
			t.Fatal(err)
		}
		tracker := geofence.NewTracker(mustIndex(t, fences...), geofence.Config{})
		trs, _ := tracker.Track(&geofence.Fix{Device: "d", Lat: 52, Lon: 13, TS: ts.UnixMilli(), Stored: ts.UnixMilli()}, ts.UnixMilli(), nil)
		if len(trs) != 1 {
			return "no enter"
		}
		trs = tracker.Advance(ts.Add(48*time.Hour).UnixMilli(), nil)
		if len(trs) != 1 || trs[0].Kind != geofence.Exit || trs[0].Reason != geofence.ReasonInactive {
			return fmt.Sprint(trs)
		}
		return time.UnixMilli(trs[0].At).UTC().Format(time.RFC3339)
	}
	for _, c := range []struct{ enter, want string }{
		{"2026-03-07T21:30:00Z", "2026-03-08T01:30:00Z"}, // an ordinary Saturday
		{"2026-03-08T01:00:00Z", "2026-03-08T01:30:00Z"}, // its early morning
		{"2026-03-28T21:30:00Z", "2026-03-29T01:00:00Z"}, // 02:00 becomes 03:00, and 02:30 never is
		{"2026-10-24T21:30:00Z", "2026-10-25T01:30:00Z"}, // 03:00 becomes 02:00: until the second 02:30
		{"2026-03-06T21:30:00Z", "no enter"},             // a Friday
	} {
		if got := exitAt(c.enter); got != c.want {
			t.Errorf("entered at %s, left at %s, want %s", c.enter, got, c.want)
		}
	}
}

func TestIndexRefusesDuplicates(t *testing.T) {
	f := mustParse(t, feature("a", "{}", square))[0]
	if _, err := geofence.NewIndex(f, f.WithRevision(2)); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a duplicate id gave %v", err)
	}
	ix := mustIndex(t, f)
	before := ix.Snapshot()
	if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{f}, Delete: []string{"a"}}); err == nil {
		t.Error("put and deleted at once")
	}
	if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{{ID: "b"}}}); err == nil {
		t.Error("a fence without a shape was put")
	}
	if ix.Snapshot() != before {
		t.Error("a refused change left something behind")
	}
	if err := ix.Apply(geofence.Change{Delete: []string{"unknown"}}); err != nil || ix.Snapshot().Fence("a") != f {
		t.Error(err)
	}
}

// The real districts load, and their writing is stable.
func TestDistrictsLoad(t *testing.T) {
	data, err := os.ReadFile(dataFile(t, "beijing-districts.geojson"))
	if err != nil {
		t.Fatal(err)
	}
	fences := mustParse(t, string(data))
	if len(fences) != 16 {
		t.Fatalf("%d fences", len(fences))
	}
	for _, f := range fences {
		b, err := f.MarshalFeature()
		if err != nil {
			t.Fatal(err)
		}
		if g := mustParse(t, string(b))[0]; g.Digest() != f.Digest() {
			t.Errorf("%s changes when it is written", f.ID)
		}
	}
}

package geofence_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// Whatever is parsed can be written, read again as the same, and asked.
func FuzzParseFences(f *testing.F) {
	for _, seed := range []string{
		feature("a", `{"dwell":["5m"],"confirm":2,"active":{"zone":"UTC","days":["mon-fri"],"hours":["22:00-06:00"]}}`, square),
		feature("a", `{"radius_m":100,"min_alt_m":5}`, `{"type":"Point","coordinates":[179.9,89.9]}`),
		feature("a", `{"radius_m":5e3}`, `{"type":"LineString","coordinates":[[179,0],[-179,1],[-179,1]]}`),
		polygon("a", `[[[0,70],[90,70],[180,70],[-90,70],[0,70]]]`),
		polygon("a", `[[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]]]`),
		`{"type":"FeatureCollection","features":[` + feature("a", "{}", square) + "," + polygon("b", `[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[1,1],[2,2],[1,2],[1,1]]]`) + `]}`,
		feature("a", "null", `{"type":"GeometryCollection","geometries":[`+square+`]}`),
		polygon("a", `[[[0,0],[2,2],[2,0],[0,2],[0,0]]]`),
		`{"type":"FeatureCollection","features":[{"type":"Feature"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fences, err := geofence.ParseFences(data)
		if err != nil {
			if len(fences) > 0 {
				t.Fatal("fences beside an error")
			}
			return
		}
		ix, err := geofence.NewIndex(fences...)
		if err != nil {
			t.Fatalf("ParseFences gave what the index refuses: %v", err)
		}
		for _, fence := range fences {
			b, err := fence.MarshalFeature()
			if err != nil {
				t.Fatal(err)
			}
			again, err := geofence.ParseFences(b)
			if err != nil {
				t.Fatalf("%s is refused: %v", b, err)
			}
			if again[0].Digest() != fence.Digest() {
				t.Fatalf("%s is read as another fence", b)
			}
			for _, p := range [][2]float64{{0, 0}, {0.5, 0.5}, {90, 0}, {-90, 180}, {1, -180}, {70.5, 3}} {
				in := fence.Contains(p[0], p[1])
				if in != again[0].Contains(p[0], p[1]) {
					t.Fatalf("%v differs in %s", p, b)
				}
				if in != slices.Contains(ix.Snapshot().Match(p[0], p[1], nil), fence) {
					t.Fatalf("the index differs at %v in %s", p, b)
				}
			}
		}
	})
}

// fuzzFences are those that the tracker's fuzz test moves among: each bit of
// a set chooses one.
var fuzzFences = func() []string {
	return []string{
		feature("a", `{"radius_m":300}`, `{"type":"Point","coordinates":[0.005,0.005]}`),
		feature("b", `{"dwell":["30s","5m"]}`, `{"type":"Polygon","coordinates":[[[0,0],[0.004,0],[0.004,0.01],[0,0.01],[0,0]]]}`),
		feature("c", `{"radius_m":40}`, `{"type":"LineString","coordinates":[[0,0],[0.01,0.01]]}`),
		feature("d", `{}`, `{"type":"MultiPolygon","coordinates":[[[[0.006,0],[0.01,0],[0.01,0.003],[0.006,0]]],[[[0.006,0.006],[0.01,0.006],[0.01,0.01],[0.006,0.006]]]]}`),
	}
}()

// The tracker keeps its promises whatever comes: enter and exit alternate,
// nothing happens to a device in a fence that it is not in, no transition
// moves backwards in time save after one that the clock fired, and without
// hysteresis the presence is the set of fences around the newest fix.
func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add(bytes.Repeat([]byte{7, 200, 3, 90, 61, 17, 44, 5}, 20))
	f.Add(bytes.Repeat([]byte{255, 1, 128, 7, 33}, 30))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		w := newWitness(t, data[0])
		data = data[1:]
		for len(data) >= 6 && w.steps < 2000 {
			w.step(data[0], binary.LittleEndian.Uint16(data[1:]), data[3], data[4], data[5])
			data = data[6:]
		}
	})
}

// witness drives a tracker and checks what it tells.
type witness struct {
	t        *testing.T
	cfg      geofence.Config
	ix       *geofence.Index
	tracker  *geofence.Tracker
	inside   map[string]bool  // by device and fence
	last     map[string]int64 // time of the last transition
	byClock  map[string]bool  // the clock fired it
	newest   map[string]int64 // TS of each device's newest fix before the step
	versions map[string]*geofence.Fence
	now      int64
	seq, rev uint64
	steps    int
}

func newWitness(t *testing.T, rules byte) *witness {
	w := &witness{
		t: t, inside: map[string]bool{}, last: map[string]int64{}, byClock: map[string]bool{}, newest: map[string]int64{},
		versions: map[string]*geofence.Fence{}, now: 1_700_000_000_000,
	}
	bit := func(i int) bool { return rules>>i&1 != 0 }
	w.cfg.Cross, w.cfg.Inside = bit(0), bit(1)
	if bit(2) {
		w.cfg.Confirm = 2
	}
	if bit(3) {
		w.cfg.ExitBufferM = 60
	}
	if bit(4) {
		w.cfg.Reorder = 20 * time.Second
	}
	if bit(5) {
		w.cfg.MaxSpeed = 20
	}
	if bit(6) {
		w.cfg.SilentAfter, w.cfg.ForgetAfter = 2*time.Minute, 10*time.Minute
	}
	if bit(7) {
		w.cfg.Dwell = []time.Duration{time.Minute}
	}
	w.ix = mustIndex(t)
	w.put(15)
	w.tracker = geofence.NewTracker(w.ix, w.cfg)
	return w
}

// put puts the fences of a set.
func (w *witness) put(set byte) {
	var c geofence.Change
	for i, geojson := range fuzzFences {
		if set>>i&1 != 0 {
			w.rev++
			fence := mustParse(w.t, geojson)[0].WithRevision(w.rev)
			w.versions[fmt.Sprint(fence.ID, w.rev)] = fence
			c.Put = append(c.Put, fence)
		}
	}
	if err := w.ix.Apply(c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *witness) step(kind byte, dt uint16, x, y, more byte) {
	w.steps++
	w.now += int64(dt) * 4
	switch kind % 16 {
	case 0:
		w.check(w.tracker.Advance(w.now+int64(more)*10_000, nil), true)
		w.now += int64(more) * 10_000
	case 1:
		w.put(more)
		w.check(w.tracker.Refence(w.now, nil), false)
	case 2:
		if err := w.ix.Apply(geofence.Change{Delete: []string{string('a' + rune(more%4))}}); err != nil {
			w.t.Fatal(err)
		}
		w.check(w.tracker.Refence(w.now, nil), false)
	case 3:
		if w.cfg.Reorder == 0 { // else fixes that wait would have to come again
			w.restart()
		}
	default:
		w.seq++
		fix := &geofence.Fix{
			Device: string('v' + rune(kind%2)), Lat: float64(y) / 256 * 0.012, Lon: float64(x) / 256 * 0.012,
			TS: w.now - int64(more%64)*500, Stored: w.now, Seq: w.seq,
		}
		w.check(w.tracker.Advance(w.now, nil), true)
		trs, result := w.tracker.Track(fix, w.now, nil)
		if result != geofence.Accepted && result != geofence.Buffered && len(trs) > 0 {
			w.t.Fatalf("a fix that is %v made transitions", result)
		}
		w.check(trs, false)
		if result == geofence.Accepted && w.cfg.Confirm < 2 && w.cfg.ExitBufferM == 0 {
			w.comparePresence(fix)
		}
	}
	for _, device := range w.tracker.Forgotten(nil) {
		w.forget(device)
		p, _ := w.tracker.Presence(device) // it may have come again
		for _, st := range p.Stays {
			w.inside[device+st.Fence.ID] = true
		}
	}
	for device := range w.tracker.Devices() {
		p, _ := w.tracker.Presence(device)
		w.newest[device] = p.Newest.TS
	}
	if next, ok := w.tracker.Next(); ok != w.tracker.Pending() || ok && next < w.now-1 && kind%16 == 0 {
		w.t.Fatalf("after advancing to %d the next timer is at %d", w.now, next)
	}
}

func (w *witness) forget(device string) {
	for key := range w.inside {
		if key[0] == device[0] {
			delete(w.inside, key)
		}
	}
}

func (w *witness) check(trs []geofence.Transition, clock bool) {
	for _, tr := range trs {
		if tr.Kind == geofence.Silent {
			continue
		}
		key := tr.Device + tr.Fence.ID
		if w.cfg.ForgetAfter > 0 && tr.Initial && w.newest[tr.Device] != tr.At {
			w.forget(tr.Device) // in between, and here comes the first of its fences again
			w.newest[tr.Device] = tr.At
		}
		switch tr.Kind {
		case geofence.Enter:
			if w.inside[key] {
				w.t.Fatalf("a second enter: %+v", tr)
			}
			w.inside[key] = true
		case geofence.Exit:
			if !w.inside[key] {
				w.t.Fatalf("an exit without an enter: %+v", tr)
			}
			delete(w.inside, key)
		case geofence.Cross:
			if w.inside[key] || tr.EnteredAt > tr.ExitedAt {
				w.t.Fatalf("a cross while inside, or backwards: %+v", tr)
			}
		default:
			if !w.inside[key] {
				w.t.Fatalf("%v while outside: %+v", tr.Kind, tr)
			}
		}
		if tr.Kind != geofence.Enter && tr.At < tr.EnteredAt || tr.Since > tr.At {
			w.t.Fatalf("ends before it begins: %+v", tr)
		}
		if tr.At < w.last[key] && !w.byClock[key] {
			w.t.Fatalf("moves backwards from %d: %+v", w.last[key], tr)
		}
		w.last[key], w.byClock[key] = tr.At, clock
	}
}

func (w *witness) comparePresence(fix *geofence.Fix) {
	p, ok := w.tracker.Presence(fix.Device)
	if !ok || w.cfg.Reorder > 0 {
		return
	}
	if p.Newest.TS != fix.TS || p.Newest.Lat != fix.Lat {
		w.t.Fatalf("the newest fix is %+v, want %+v", p.Newest, fix)
	}
	want := w.ix.Snapshot().Match(fix.Lat, fix.Lon, nil)
	if len(want) != len(p.Stays) {
		w.t.Fatalf("%d stays, want %d", len(p.Stays), len(want))
	}
	for i, st := range p.Stays {
		if st.Fence != want[i] {
			w.t.Fatalf("stay %d is in %s, want %s", i, st.Fence.ID, want[i].ID)
		}
	}
}

// restart saves and restores; the encoding has to come out alike.
func (w *witness) restart() {
	next := geofence.NewTracker(w.ix, w.cfg)
	for device := range w.tracker.Devices() {
		enc, ok := w.tracker.AppendPresence(nil, device)
		if !ok {
			continue
		}
		err := next.Restore(device, enc, func(id string, rev uint64) *geofence.Fence { return w.versions[fmt.Sprint(id, rev)] })
		if err != nil {
			w.t.Fatal(err)
		}
		again, ok := next.AppendPresence(nil, device)
		if !ok || !bytes.Equal(enc, again) {
			w.t.Fatalf("a presence changes by being saved:\n%x\n%x", enc, again)
		}
		for n := range enc { // no prefix of it is taken for a presence
			if err := geofence.NewTracker(w.ix, w.cfg).Restore(device, enc[:n], nil); err == nil {
				w.t.Fatalf("a presence cut short is taken: %x", enc[:n])
			}
		}
	}
	w.tracker = next
	w.check(next.Refence(w.now, nil), false)
}

// Fixes at the ends of what a float can say do no harm.
func TestTrackerTakesOddPositions(t *testing.T) {
	ix := mustIndex(t, mustParse(t, polygon("w", `[[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]]]`))...)
	tracker := geofence.NewTracker(ix, geofence.Config{Cross: true})
	ts := int64(1)
	for _, lat := range []float64{-90, 0, math.Copysign(0, -1), 90} {
		for _, lon := range []float64{-180, math.Copysign(0, -1), 180} {
			trs, result := tracker.Track(&geofence.Fix{Device: "d", Lat: lat, Lon: lon, TS: ts}, ts, nil)
			if result != geofence.Accepted || len(trs) != 0 && ts > 1 {
				t.Fatalf("%v,%v: %v, %v", lat, lon, result, trs)
			}
			ts++
		}
	}
}

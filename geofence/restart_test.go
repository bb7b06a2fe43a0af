package geofence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// message is what a partition reads: a fix, or only the time.
type message struct {
	fix *geofence.Fix
	now int64
}

// randomRules draws a configuration.
func randomRules(r *rand.Rand) geofence.Config {
	maybe := func(p float64) bool { return r.Float64() < p }
	cfg := geofence.Config{Cross: maybe(0.5), Inside: maybe(0.3), SilentInitial: maybe(0.2)}
	if maybe(0.4) {
		cfg.Confirm = 1 + r.IntN(3)
	}
	if maybe(0.4) {
		cfg.ExitBufferM = 40 * r.Float64()
	}
	if maybe(0.5) {
		cfg.Dwell = []time.Duration{20 * time.Second, 90 * time.Second, 10 * time.Minute}
	}
	if maybe(0.4) {
		cfg.Reorder = 15 * time.Second
	}
	if maybe(0.3) {
		cfg.MaxSpeed = 15
	}
	if maybe(0.3) {
		cfg.MaxAccuracyM = 60
	}
	if cfg.Inside && maybe(0.5) {
		cfg.InsideEvery = 30 * time.Second
	}
	if maybe(0.3) {
		cfg.SilentAfter = 2 * time.Minute
	}
	return cfg
}

// randomFences draws fences of all kinds near 0,0, with rules of their own.
func randomFences(t testing.TB, r *rand.Rand, n int) []*geofence.Fence {
	var features []string
	for i := range n {
		features = append(features, randomFence(r, fmt.Sprintf("f%02d", i)))
	}
	return mustParse(t, `{"type":"FeatureCollection","features":[`+strings.Join(features, ",")+`]}`)
}

// world is the side, in degrees, of the square that everything happens in:
// about 1.1 km.
const world = 0.01

func randomFence(r *rand.Rand, id string) string {
	x, y := r.Float64()*world, r.Float64()*world
	size := world * (0.02 + 0.2*r.Float64())
	var props []string
	add := func(p float64, format string, args ...any) {
		if r.Float64() < p {
			props = append(props, fmt.Sprintf(format, args...))
		}
	}
	add(0.15, `"exit_buffer_m":%d`, r.IntN(50))
	add(0.15, `"confirm":%d`, r.IntN(4))
	add(0.2, `"dwell":["%ds","3m"]`, 5+r.IntN(60))
	add(0.15, `"max_accuracy_m":%d`, 10+r.IntN(100))
	add(0.1, `"min_alt_m":20`)
	add(0.1, `"max_alt_m":80`)
	add(0.15, `"active":{"zone":"Asia/Shanghai","hours":["08:00-08:%02d","08:30-12:00"]}`, 1+r.IntN(25))
	var geometry string
	switch r.IntN(3) {
	case 0:
		props = append(props, fmt.Sprintf(`"radius_m":%d`, 20+r.IntN(150)))
		geometry = fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, x, y)
	case 1:
		props = append(props, fmt.Sprintf(`"radius_m":%d`, 10+r.IntN(40)))
		geometry = fmt.Sprintf(`{"type":"LineString","coordinates":[[%v,%v],[%v,%v]]}`, x, y, x+size, y+size*r.Float64())
	default:
		geometry = `{"type":"Polygon","coordinates":[` + randomRing(r, x, y, size, 3+r.IntN(60)) + `]}`
	}
	return feature(id, "{"+strings.Join(props, ",")+"}", geometry)
}

// randomRing draws a star-shaped ring.
func randomRing(r *rand.Rand, x, y, size float64, n int) string {
	pts := make([]string, n+1)
	for i := range n {
		s := size * (0.3 + 0.7*r.Float64())
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		pts[i] = fmt.Sprintf("[%v,%v]", x+s*cos, y+s*sin)
	}
	pts[n] = pts[0]
	return "[" + strings.Join(pts, ",") + "]"
}

// randomJourneys draws what some devices report in an hour, and ticks. 00:00
// UTC is 08:00 in Shanghai.
func randomJourneys(r *rand.Rand, n int) []message {
	type walker struct{ x, y, vx, vy float64 }
	walkers := make([]walker, 4)
	for i := range walkers {
		walkers[i] = walker{x: r.Float64() * world, y: r.Float64() * world}
	}
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
	now := start
	var log []message
	for seq := range n {
		now += int64(r.IntN(8000))
		if r.IntN(40) == 0 {
			now += int64(r.IntN(400_000))
		}
		if r.IntN(6) == 0 {
			log = append(log, message{now: now})
			continue
		}
		k := r.IntN(len(walkers))
		w := &walkers[k]
		if r.IntN(3) == 0 {
			w.vx, w.vy = (r.Float64()-0.5)*world/5, (r.Float64()-0.5)*world/5
			if r.IntN(2) == 0 {
				w.vx, w.vy = 0, 0
			}
		}
		w.x, w.y = math.Mod(w.x+w.vx+world, world), math.Mod(w.y+w.vy+world, world)
		fix := &geofence.Fix{
			Device: fmt.Sprintf("d%d", k), Lat: w.y, Lon: w.x, TS: now, Stored: now, Seq: uint64(seq + 1),
			Has: geofence.HasAlt | geofence.HasAccuracy, Alt: float64(r.IntN(100)), Accuracy: float64(r.IntN(70)),
		}
		if r.IntN(3) == 0 {
			fix.Has &^= geofence.HasAlt
		}
		if r.IntN(3) == 0 {
			fix.Props = fmt.Appendf(nil, `{"n":%d}`, seq)
		}
		if r.IntN(4) == 0 {
			fix.TS -= int64(r.IntN(20_000)) // late, or out of order
		}
		if r.IntN(50) == 0 {
			fix.TS += 3_600_000
		}
		if r.IntN(25) == 0 {
			fix.Lat, fix.Lon = r.Float64()*world, r.Float64()*world // wild
		}
		log = append(log, message{fix: fix, now: now})
	}
	return append(log, message{now: now + 3_600_000})
}

// take gives one message to a tracker, as a partition does.
func take(t *geofence.Tracker, m *message, skip bool) []string {
	trs := t.Advance(m.now, nil)
	out := describe(nil, trs)
	if m.fix != nil && !skip {
		trs, _ = t.Track(m.fix, m.now, trs[:0])
		out = describe(out, trs)
	}
	return out
}

func describe(out []string, trs []geofence.Transition) []string {
	for _, tr := range trs {
		fence := ""
		if tr.Fence != nil {
			fence = fmt.Sprint(tr.Fence.ID, "@", tr.Fence.Revision)
		}
		fix := tr.Fix
		fix.Props = nil
		out = append(out, fmt.Sprint(tr.Device, tr.Kind, fence, " at ", tr.At, " since ", tr.Since, " in ", tr.EnteredAt,
			" out ", tr.ExitedAt, tr.Dwell, tr.Initial, tr.Reason, tr.Revision, fix, string(tr.Fix.Props)))
	}
	return out
}

func uninterrupted(ix *geofence.Index, cfg geofence.Config, log []message, search bool) (out []string) {
	t := geofence.NewTracker(ix, cfg)
	if search {
		t.AlwaysSearch()
	}
	for i := range log {
		out = append(out, take(t, &log[i], false)...)
	}
	return out
}

// A tracker that is stopped at random points, begins again from presences that
// were saved at various times before, and reads again what these don't
// contain, tells exactly what one tells that never stopped.
func TestRestartedTrackerTellsTheSame(t *testing.T) {
	t.Parallel()
	runs := 300
	if testing.Short() {
		runs = 50
	}
	total := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := randomRules(r)
		ix := mustIndex(t, randomFences(t, r, 12)...)
		log := randomJourneys(r, 400)
		want := uninterrupted(ix, cfg, log, true)
		total += len(want)
		got := withRestarts(t, r, ix, cfg, log)
		slices.Sort(want)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v: %s", seed, cfg, difference(got, want))
		}
	}
	if total < 20*runs {
		t.Fatalf("only %d transitions in %d runs: the test tests little", total, runs)
	}
}

func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			return fmt.Sprintf("%d transitions, want %d; at %d:\n got %v\nwant %v", len(got), len(want), i,
				strings.Join(got[min(i, len(got)):min(i+2, len(got))], "\n     "),
				strings.Join(want[min(i, len(want)):min(i+2, len(want))], "\n     "))
		}
	}
	return "the same"
}

// withRestarts returns the set of all that is told, sorted.
func withRestarts(t *testing.T, r *rand.Rand, ix *geofence.Index, cfg geofence.Config, log []message) []string {
	told := map[string]bool{}
	saved := map[string][]byte{}
	tracker := geofence.NewTracker(ix, cfg)
	crash := 3 + r.IntN(60)
	for i := 0; i < len(log); i++ {
		m := &log[i]
		skip := m.fix != nil && m.fix.Seq <= tracker.Seq(m.fix.Device)
		for _, s := range take(tracker, m, skip) {
			told[s] = true
		}
		if r.IntN(3) == 0 { // a commit saves some presences
			for device := range tracker.Devices() {
				if enc, ok := tracker.AppendPresence(nil, device); ok && r.IntN(2) == 0 {
					saved[device] = enc
				}
			}
		}
		if crash--; crash != 0 {
			continue
		}
		crash = 60 + r.IntN(200)
		tracker = geofence.NewTracker(ix, cfg)
		from := uint64(math.MaxUint64) // the oldest fix that is in no saved presence
		for k := range 4 {
			device := fmt.Sprintf("d%d", k)
			if enc := saved[device]; enc != nil {
				if err := tracker.Restore(device, enc, nil); err != nil {
					t.Fatal(err)
				}
			}
			from = min(from, tracker.Seq(device)+1)
		}
		if trs := tracker.Refence(m.now, nil); len(trs) > 0 {
			t.Fatalf("a restart with unchanged fences told %v", describe(nil, trs))
		}
		for i = 0; log[i].fix == nil || log[i].fix.Seq < from; i++ {
			if i == len(log)-1 {
				break
			}
		}
		i--
	}
	out := make([]string, 0, len(told))
	for s := range told {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// The boxes in which nothing can change make no difference.
func TestSafeBoxesMakeNoDifference(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 50
	}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 2))
		cfg := randomRules(r)
		ix := mustIndex(t, randomFences(t, r, 1+r.IntN(12))...)
		log := randomJourneys(r, 400)
		for i := range log { // slower, so that boxes pay off
			if m := &log[i]; m.fix != nil && seed%2 == 0 {
				m.fix.Lat, m.fix.Lon = world/2+m.fix.Lat/50, world/2+m.fix.Lon/50
			}
		}
		if got, want := uninterrupted(ix, cfg, log, false), uninterrupted(ix, cfg, log, true); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v: %s", seed, cfg, difference(got, want))
		}
	}
}

func TestGeolifeSafeBoxesMakeNoDifference(t *testing.T) {
	t.Parallel()
	ix, fixes := mustIndex(t, districts(t)...), geolife(t)
	cfg := geofence.Config{Cross: true, Dwell: []time.Duration{time.Hour}, ExitBufferM: 50}
	told := func(search bool) (out []string) {
		tracker := geofence.NewTracker(ix, cfg)
		if search {
			tracker.AlwaysSearch()
		}
		replay(tracker, fixes, func(tr geofence.Transition) {
			out = describe(out, []geofence.Transition{tr})
		})
		return out
	}
	if got, want := told(false), told(true); !slices.Equal(got, want) || len(want) < 300 {
		t.Fatalf("%d transitions: %s", len(want), difference(got, want))
	}
}

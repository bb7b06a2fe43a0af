package geofence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/golang/geo/s2"
	"github.com/tidwall/geojson/geometry"
	"github.com/tidwall/rtree"

	"github.com/tripline/tripline/geofence"
)

// The benchmarks compare with others in the same run, on the same data, and
// report the ratio: it holds on any machine.
//
//	go test -run '^$' -bench . ./geofence

// compare times two functions in turns, so that a busy machine slows both
// alike, and reports the second's time and how many times it the first takes.
func compare(b *testing.B, ours, theirs func(n int), name string) {
	b.Helper()
	const turn = 2000
	var a, c time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours(turn)
	theirs(turn)
	n := 0
	for b.Loop() {
		start := cpuTime()
		ours(turn)
		mid := cpuTime()
		theirs(turn)
		a += mid - start
		c += cpuTime() - mid
		n += turn
	}
	b.ReportMetric(float64(a.Nanoseconds())/float64(n), "ours-ns")
	b.ReportMetric(float64(c.Nanoseconds())/float64(n), name+"-ns")
	b.ReportMetric(float64(a)/float64(c), "x-"+name)
	b.ReportMetric(0, "ns/op")
}

// plane is n fences of 20 vertices at a constant density: a point is in 0.4
// of them on average.
type plane struct {
	rings [][][2]float64
	side  float64
	x, y  []float64 // points to ask for
}

func newPlane(n int) *plane {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	const step = 0.1
	p := &plane{side: math.Sqrt(float64(n)) * step}
	for range n {
		p.rings = append(p.rings, ring20(r, r.Float64()*p.side-50, r.Float64()*p.side-50, step*math.Sqrt(0.4/math.Pi)))
	}
	for range 1 << 14 {
		p.x = append(p.x, r.Float64()*p.side-50)
		p.y = append(p.y, r.Float64()*p.side-50)
	}
	return p
}

func ring20(r *rand.Rand, x, y, radius float64) [][2]float64 {
	ring := make([][2]float64, 0, 21)
	for i := range 20 {
		s := radius * (0.9 + 0.2*r.Float64())
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / 20)
		ring = append(ring, [2]float64{x + s*cos, y + s*sin})
	}
	return append(ring, ring[0])
}

func (p *plane) fences() []*geofence.Fence {
	fences := make([]*geofence.Fence, len(p.rings))
	for i, ring := range p.rings {
		fences[i] = geofence.PolygonFence(fmt.Sprintf("fence-%07d", i), ring)
	}
	return fences
}

// bare is what one would write first: a tree of boxes, and a ray casting.
type bare struct {
	tree rtree.RTreeG[*barePolygon]
}

type barePolygon struct {
	id   int
	ring [][2]float64
}

func (p *barePolygon) contains(x, y float64) bool {
	in := false
	for i, j := 0, len(p.ring)-1; i < len(p.ring); j, i = i, i+1 {
		a, b := p.ring[i], p.ring[j]
		if (a[1] > y) != (b[1] > y) && x < (b[0]-a[0])*(y-a[1])/(b[1]-a[1])+a[0] {
			in = !in
		}
	}
	return in
}

func newBare(rings [][][2]float64) *bare {
	t := &bare{}
	for i, ring := range rings {
		lo, hi := ring[0], ring[0]
		for _, p := range ring {
			lo = [2]float64{min(lo[0], p[0]), min(lo[1], p[1])}
			hi = [2]float64{max(hi[0], p[0]), max(hi[1], p[1])}
		}
		t.tree.Insert(lo, hi, &barePolygon{i, append([][2]float64(nil), ring[:len(ring)-1]...)})
	}
	return t
}

func (t *bare) match(x, y float64, dst []*barePolygon) []*barePolygon {
	at := [2]float64{x, y}
	t.tree.Search(at, at, func(_, _ [2]float64, p *barePolygon) bool {
		if p.contains(x, y) {
			dst = append(dst, p)
		}
		return true
	})
	return dst
}

// Target: at most 1.15 x the bare tree.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := newPlane(n)
			snapshot, other := mustIndex(b, p.fences()...).Snapshot(), newBare(p.rings)
			p.rings = nil
			var hits []*geofence.Fence
			var found []*barePolygon
			i, j, total, same := 0, 0, 0, 0
			compare(b, func(n int) {
				for range n {
					hits = snapshot.Match(p.y[i&(len(p.x)-1)], p.x[i&(len(p.x)-1)], hits[:0])
					total += len(hits)
					i++
				}
			}, func(n int) {
				for range n {
					found = other.match(p.x[j&(len(p.x)-1)], p.y[j&(len(p.x)-1)], found[:0])
					same += len(found)
					j++
				}
			}, "bare")
			if total != same {
				b.Fatalf("%d hits, the bare tree has %d", total, same)
			}
			b.ReportMetric(float64(total)/float64(i), "hits")
		})
	}
}

// largest is the district with the most vertices, as a fence and as a ring.
func largest(tb testing.TB) *geofence.Fence {
	for _, f := range districts(tb) {
		if f.ID == "fangshan" || f.ID == "huairou" || f.ID == "yanqing" || f.ID == "miyun" {
			if b, err := f.MarshalFeature(); err == nil && strings.Count(string(b), "],[") > 6300 {
				return f
			}
		}
	}
	var best *geofence.Fence
	most := 0
	for _, f := range districts(tb) {
		if b, err := f.MarshalFeature(); err == nil && len(b) > most {
			best, most = f, len(b)
		}
	}
	return best
}

// around draws points in a fence's box.
func around(r *rand.Rand, f *geofence.Fence, n int) (x, y []float64) {
	lo, hi := f.Bounds()
	for range n {
		x = append(x, lo[0]+r.Float64()*(hi[0]-lo[0]))
		y = append(y, lo[1]+r.Float64()*(hi[1]-lo[1]))
	}
	return x, y
}

// Target: a district of 6,324 vertices costs at most 3 x a polygon of 20.
func BenchmarkPointInDistrict(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 1))
	district := largest(b)
	small := geofence.PolygonFence("small", ring20(r, 10, 10, 1))
	x, y := around(r, district, 1<<14)
	u, v := around(r, small, 1<<14)
	i, j, sink := 0, 0, 0
	compare(b, func(n int) {
		for range n {
			if district.Contains(y[i&(1<<14-1)], x[i&(1<<14-1)]) {
				sink++
			}
			i++
		}
	}, func(n int) {
		for range n {
			if small.Contains(v[j&(1<<14-1)], u[j&(1<<14-1)]) {
				sink++
			}
			j++
		}
	}, "small")
}

// spiky is a star of n vertices with random radii: each edge is long.
func spiky(n int) [][2]float64 {
	r := rand.New(rand.NewPCG(7, 2))
	ring := make([][2]float64, 0, n+1)
	for i := range n {
		s := 0.05 + 0.95*r.Float64()
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		ring = append(ring, [2]float64{10 + s*cos, 20 + s*sin})
	}
	return append(ring, ring[0])
}

// Target: faster than golang/geo's and tidwall/geojson's.
func BenchmarkPointInStar(b *testing.B) {
	ring := spiky(10_000)
	star := geofence.PolygonFence("star", ring)
	x, y := around(rand.New(rand.NewPCG(7, 3)), star, 1<<14)
	i, j, sink := 0, 0, 0
	ours := func(n int) {
		for range n {
			if star.Contains(y[i&(1<<14-1)], x[i&(1<<14-1)]) {
				sink++
			}
			i++
		}
	}
	b.Run("s2", func(b *testing.B) {
		pts := make([]s2.Point, len(ring)-1)
		for i := range pts {
			pts[i] = s2.PointFromLatLng(s2.LatLngFromDegrees(ring[i][1], ring[i][0]))
		}
		loop := s2.LoopFromPoints(pts)
		asked := make([]s2.Point, len(x))
		for i := range asked { // made before, in their favour
			asked[i] = s2.PointFromLatLng(s2.LatLngFromDegrees(y[i], x[i]))
		}
		compare(b, ours, func(n int) {
			for range n {
				if loop.ContainsPoint(asked[j&(1<<14-1)]) {
					sink++
				}
				j++
			}
		}, "s2")
	})
	b.Run("geojson", func(b *testing.B) {
		pts := make([]geometry.Point, len(ring))
		for i, p := range ring {
			pts[i] = geometry.Point{X: p[0], Y: p[1]}
		}
		poly := geometry.NewPoly(pts, nil, geometry.DefaultIndexOptions)
		compare(b, ours, func(n int) {
			for range n {
				if poly.ContainsPoint(geometry.Point{X: x[j&(1<<14-1)], Y: y[j&(1<<14-1)]}) {
					sink++
				}
				j++
			}
		}, "geojson")
	})
}

// Target: the real traces over the real districts go at least 5 x as fast as
// with tidwall/rtree and tidwall/geojson's polygons, so x-geojson <= 0.2.
func BenchmarkGeolifeMatch(b *testing.B) {
	fixes, fences := geolife(b), districts(b)
	snapshot := mustIndex(b, fences...).Snapshot()
	var tree rtree.RTreeG[*multi]
	for _, f := range fences {
		m := multiOf(f)
		lo, hi := f.Bounds()
		tree.Insert(lo, hi, m)
	}
	var hits []*geofence.Fence
	var found []*multi
	i, j, total, same := 0, 0, 0, 0
	compare(b, func(n int) {
		for range n {
			f := &fixes[i]
			hits = snapshot.Match(f.Lat, f.Lon, hits[:0])
			total += len(hits)
			i = (i + 1) % len(fixes)
		}
	}, func(n int) {
		for range n {
			f := &fixes[j]
			at := [2]float64{f.Lon, f.Lat}
			found = found[:0]
			tree.Search(at, at, func(_, _ [2]float64, m *multi) bool {
				if m.contains(geometry.Point{X: f.Lon, Y: f.Lat}) {
					found = append(found, m)
				}
				return true
			})
			same += len(found)
			j = (j + 1) % len(fixes)
		}
	}, "geojson")
	if total != same {
		b.Fatalf("%d hits, geojson has %d", total, same)
	}
}

// multi is a multipolygon of tidwall/geojson's.
type multi struct{ polys []*geometry.Poly }

func (m *multi) contains(p geometry.Point) bool {
	for _, poly := range m.polys {
		if poly.ContainsPoint(p) {
			return true
		}
	}
	return false
}

func multiOf(f *geofence.Fence) *multi {
	m := &multi{}
	for _, rings := range f.Rings() {
		var all [][]geometry.Point
		for _, ring := range rings {
			pts := make([]geometry.Point, len(ring))
			for i, p := range ring {
				pts[i] = geometry.Point{X: p[0], Y: p[1]}
			}
			all = append(all, pts)
		}
		m.polys = append(m.polys, geometry.NewPoly(all[0], all[1:], geometry.DefaultIndexOptions))
	}
	return m
}

// What the safe boxes save on the real traces: x-search < 1. The index is that
// of the districts, then one of 100,000 fences around the city.
func BenchmarkGeolifeTrack(b *testing.B) {
	fixes := geolife(b)
	r := rand.New(rand.NewPCG(7, 4))
	var many []*geofence.Fence
	for i := range 100_000 {
		many = append(many, geofence.PolygonFence(fmt.Sprintf("f%06d", i),
			ring20(r, 115.5+2*r.Float64(), 39.5+1.5*r.Float64(), 0.001+0.001*r.Float64())))
	}
	for name, fences := range map[string][]*geofence.Fence{"districts": districts(b), "100000": many} {
		b.Run(name, func(b *testing.B) {
			ix := mustIndex(b, fences...)
			run := func(search bool) func(n int) {
				var tracker *geofence.Tracker
				var trs []geofence.Transition
				i := 0
				return func(n int) {
					for range n {
						if i == 0 {
							tracker = geofence.NewTracker(ix, geofence.Config{})
							if search {
								tracker.AlwaysSearch()
							}
						}
						trs, _ = tracker.Track(&fixes[i], fixes[i].Stored, trs[:0])
						i = (i + 1) % len(fixes)
					}
				}
			}
			compare(b, run(false), run(true), "search")
		})
	}
}

func planeGeoJSON(n int) []byte {
	p := newPlane(n)
	var b strings.Builder
	b.WriteString(`{"type":"FeatureCollection","features":[`)
	for i, ring := range p.rings {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"Feature","id":"fence-%07d","properties":{"name":"Fence %d"},"geometry":{"type":"Polygon","coordinates":[[`, i, i)
		for j, q := range ring {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "[%.6f,%.6f]", q[0], q[1])
		}
		b.WriteString(`]]}}`)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// Target: 100,000 fences of 20 vertices load in at most 2 s, from GeoJSON to
// an index.
func BenchmarkLoad(b *testing.B) {
	data := planeGeoJSON(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		fences, err := geofence.ParseFences(data)
		if err != nil {
			b.Fatal(err)
		}
		mustIndex(b, fences...)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/load")
}

// Target: one of 100,000 fences replaced is visible within 2 ms; readers go
// on meanwhile.
func BenchmarkReplaceOne(b *testing.B) {
	p := newPlane(100_000)
	ix := mustIndex(b, p.fences()...)
	r := rand.New(rand.NewPCG(7, 5))
	var worst time.Duration
	for b.Loop() {
		i := r.IntN(len(p.rings))
		f := geofence.PolygonFence(fmt.Sprintf("fence-%07d", i), p.rings[i])
		start := time.Now()
		if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{f}}); err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(start))
		if ix.Snapshot().Fence(f.ID) != f {
			b.Fatal("not visible")
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// heap is how many bytes what make returns holds.
func heap[T any](make func() T) (T, float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := make()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return v, float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// A fence of 20 vertices takes at most 1.2 KB, its share of the index
// included.
func TestMemoryPerFence(t *testing.T) {
	const n = 50_000
	data := planeGeoJSON(n)
	ix, bytes := heap(func() *geofence.Index { return mustIndex(t, mustParse(t, string(data))...) })
	t.Logf("%.0f bytes per fence", bytes/n)
	if bytes/n > 1200 {
		t.Errorf("%.0f bytes per fence, want at most 1200", bytes/n)
	}
	if ix.Snapshot().Len() != n || len(data) == 0 { // data has to live as long
		t.Fatal("fences are missing")
	}
}

// A device outside all fences takes at most 250 bytes.
func TestMemoryPerDevice(t *testing.T) {
	const n = 200_000
	ix := mustIndex(t, mustParse(t, polygon("far", `[[[50,50],[51,50],[51,51],[50,50]]]`))...)
	tracker, bytes := heap(func() *geofence.Tracker {
		tracker := geofence.NewTracker(ix, geofence.Config{})
		for i := range 3 * n {
			tracker.Track(&geofence.Fix{
				Device: fmt.Sprintf("vehicle-%06d", i%n), Lat: float64(i%n) / n, TS: int64(i), Stored: int64(i),
				Has: geofence.HasAccuracy | geofence.HasSpeed | geofence.HasHeading, Accuracy: 5, Speed: 10, Heading: 90,
			}, int64(i), nil)
		}
		return tracker
	})
	t.Logf("%.0f bytes per device", bytes/n)
	if bytes/n > 250 {
		t.Errorf("%.0f bytes per device, want at most 250", bytes/n)
	}
	if tracker.Len() != n {
		t.Fatal("devices are missing")
	}
}

package geofence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := cpuTime()
	for b.Loop() {
		fences, err := geofence.ParseFences(data)
		if err != nil {
			b.Fatal(err)
		}
		mustIndex(b, fences...)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/load")
	b.ReportMetric((cpuTime()-start).Seconds()/float64(b.N), "cpu-s/load")
	b.ReportMetric(0, "ns/op")
}

// Target: one of 100,000 fences replaced is visible within 2 ms; readers go
// on meanwhile.
func BenchmarkReplaceOne(b *testing.B) {
	p := newPlane(100_000)
	ix := mustIndex(b, p.fences()...)
	r := rand.New(rand.NewPCG(7, 5))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var worst time.Duration
	for b.Loop() {
		i := r.IntN(len(p.rings))
		f := geofence.PolygonFence(fmt.Sprintf("fence-%07d", i), p.rings[i])
		start := cpuTime()
		if err := ix.Apply(geofence.Change{Put: []*geofence.Fence{f}}); err != nil {
			b.Fatal(err)
		}
		worst = max(worst, cpuTime()-start)
		if ix.Snapshot().Fence(f.ID) != f {
			b.Fatal("not visible")
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

package geofence_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/tripline/tripline/geofence"
)

const earthRadius = 6371008.8

// naive is a polygon as an oracle sees it: it looks at every edge, on
// coordinates whose products are exact.
type naive [][][2]float64

func (n naive) contains(x, y float64) bool {
	odd := false
	for _, ring := range n {
		for i := 1; i < len(ring); i++ {
			ax, ay, bx, by := ring[i-1][0], ring[i-1][1], ring[i][0], ring[i][1]
			cross := (bx-ax)*(y-ay) - (by-ay)*(x-ax)
			if cross == 0 && x >= min(ax, bx) && x <= max(ax, bx) && y >= min(ay, by) && y <= max(ay, by) {
				return true
			}
			if (ay > y) != (by > y) && (cross > 0) == (by > ay) {
				odd = !odd
			}
		}
	}
	return odd
}

func (n naive) geojson() string {
	rings := make([]string, len(n))
	for i, ring := range n {
		pts := make([]string, len(ring))
		for j, p := range ring {
			pts[j] = fmt.Sprintf("[%v,%v]", p[0], p[1])
		}
		rings[i] = "[" + strings.Join(pts, ",") + "]"
	}
	return "[" + strings.Join(rings, ",") + "]"
}

// star draws a ring of n points on multiples of 1/64 degree.
func star(r *rand.Rand, n int, x, y, least, most float64) [][2]float64 {
	ring := make([][2]float64, 0, n+1)
	for i := range n {
		s := least + (most-least)*r.Float64()
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		ring = append(ring, [2]float64{snap(x + s*cos), snap(y + s*sin)})
	}
	return append(ring, ring[0])
}

func snap(v float64) float64 { return math.Round(v*64) / 64 }

// Polygons of all sizes, with holes and islands, over points of all kinds:
// anywhere, on vertices, on edges, level with vertices.
func TestPolygonsMatchNaiveOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	points, polygons, onEdge := 0, 0, 0
	for points < 150_000 {
		n := naive{star(r, 3+r.IntN(400), 10, 20, 4, 8)}
		if r.IntN(2) == 0 {
			n = append(n, star(r, 3+r.IntN(100), 10, 20, 1.5, 3.5))
			if r.IntN(2) == 0 {
				n = append(n, star(r, 3+r.IntN(20), 10, 20, 0.2, 1))
			}
		}
		fences, err := geofence.ParseFences([]byte(polygon("f", n.geojson())))
		if err != nil {
			continue // snapped to the raster it crosses itself
		}
		polygons++
		ask := func(x, y float64) {
			points++
			if got, want := fences[0].Contains(y, x), n.contains(x, y); got != want {
				t.Fatalf("%v,%v is inside: %v, want %v, of %s", x, y, got, want, n.geojson())
			}
		}
		for range 400 {
			ask(snap(1+18*r.Float64()), snap(11+18*r.Float64()))
			ask(1+18*r.Float64(), 11+18*r.Float64())
			ring := n[r.IntN(len(n))]
			i := r.IntN(len(ring) - 1)
			a, b := ring[i], ring[i+1]
			ask(a[0], a[1])
			ask(snap(1+18*r.Float64()), a[1])
			mx, my := (a[0]+b[0])/2, (a[1]+b[1])/2 // exactly on the edge
			onEdge++
			if !fences[0].Contains(my, mx) {
				t.Fatalf("%v,%v is on an edge, but not inside %s", mx, my, n.geojson())
			}
		}
	}
	t.Logf("%d points, %d more on edges, over %d polygons", points, onEdge, polygons)
}

func TestOrientIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	rat := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	sub := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
	mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	for range 20_000 {
		ax, ay := r.Float64()*360-180, r.Float64()*180-90
		bx, by := ax+r.Float64()*math.Pow(10, -float64(r.IntN(8))), ay+r.Float64()*math.Pow(10, -float64(r.IntN(8)))
		s := r.Float64() * 1.5
		cx, cy := ax+s*(bx-ax), ay+s*(by-ay) // within rounding of the line
		if r.IntN(10) == 0 {
			cx, cy = bx, by
		}
		a, b, c, d, x, y := rat(ax), rat(ay), rat(bx), rat(by), rat(cx), rat(cy)
		want := sub(mul(sub(c, a), sub(y, b)), mul(sub(d, b), sub(x, a))).Sign()
		if got := geofence.OrientSign(ax, ay, bx, by, cx, cy); got != want {
			t.Fatalf("orient(%v %v, %v %v, %v %v) is %d, want %d", ax, ay, bx, by, cx, cy, got, want)
		}
	}
}

// metres is the distance by another formula than the package's.
func metres(lat1, lon1, lat2, lon2 float64) float64 {
	a, b := s2.PointFromLatLng(s2.LatLngFromDegrees(lat1, lon1)), s2.PointFromLatLng(s2.LatLngFromDegrees(lat2, lon2))
	return float64(a.Distance(b)) * earthRadius
}

// Circles, over the poles and 180 degrees too, against golang/geo's caps.
func TestCirclesMatchS2(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	checked := 0
	for range 400 {
		lat, lon := r.Float64()*180-90, r.Float64()*360-180
		switch r.IntN(4) {
		case 0:
			lat = math.Copysign(90-r.Float64(), lat)
		case 1:
			lon = math.Copysign(180-r.Float64()*0.5, lon)
		case 2:
			lat, lon = 90, 180
		}
		radius := math.Pow(10, 1+6*r.Float64())
		f := mustParse(t, feature("c", fmt.Sprintf(`{"radius_m":%v}`, radius),
			fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, lon, lat)))[0]
		ix := mustIndex(t, f).Snapshot()
		c := s2.CapFromCenterAngle(s2.PointFromLatLng(s2.LatLngFromDegrees(lat, lon)), s1.Angle(radius/earthRadius))
		for range 300 {
			q := offset(r, lat, lon, radius)
			m := metres(lat, lon, q[0], q[1])
			if math.Abs(m-radius) < 1e-3+1e-8*radius {
				continue
			}
			checked++
			want := c.ContainsPoint(s2.PointFromLatLng(s2.LatLngFromDegrees(q[0], q[1])))
			if got := len(ix.Match(q[0], q[1], nil)) == 1; got != want || f.Contains(q[0], q[1]) != want {
				t.Fatalf("%v, %v m from a circle of %v m around %v,%v: inside %v, want %v", q, m, radius, lat, lon, got, want)
			}
		}
	}
	if checked < 100_000 {
		t.Fatalf("only %d points", checked)
	}
}

// offset draws a point about as far from lat,lon as m metres.
func offset(r *rand.Rand, lat, lon, m float64) [2]float64 {
	p := s2.PointFromLatLng(s2.LatLngFromDegrees(lat, lon))
	axis := s2.Ortho(p)
	angle := s1.Angle(math.Min(math.Pi, m/earthRadius*(2*r.Float64())))
	q := s2.Rotate(s2.Rotate(p, axis, angle), p, s1.Angle(2*math.Pi*r.Float64()))
	ll := s2.LatLngFromPoint(q)
	return [2]float64{ll.Lat.Degrees(), ll.Lng.Degrees()}
}

// Small polygons, where straight in longitude and latitude is the same as
// straight on the sphere, against golang/geo's loops.
func TestSmallPolygonsMatchS2(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	checked := 0
	for range 150 {
		lat, lon := r.Float64()*160-80, r.Float64()*360-180
		if r.IntN(3) == 0 {
			lon = math.Copysign(179.9999, lon)
		}
		size, n := 0.0002+0.002*r.Float64(), 3+r.IntN(60)
		stretch := 1 / math.Cos(lat*math.Pi/180)
		var pts []s2.Point
		var ring [][2]float64
		for i := range n {
			s := size * (0.3 + 0.7*r.Float64())
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
			x, y := lon+s*cos*stretch, lat+s*sin
			x = math.Mod(x+540, 360) - 180
			ring = append(ring, [2]float64{x, y})
			pts = append(pts, s2.PointFromLatLng(s2.LatLngFromDegrees(y, x)))
		}
		f := mustParse(t, polygon("p", naive{append(ring, ring[0])}.geojson()))[0]
		snapshot := mustIndex(t, f).Snapshot()
		loop := s2.LoopFromPoints(pts)
		for range 1000 {
			y := lat + size*1.2*(2*r.Float64()-1)
			x := math.Mod(lon+size*1.2*stretch*(2*r.Float64()-1)+540, 360) - 180
			p := s2.PointFromLatLng(s2.LatLngFromDegrees(y, x))
			if nearLoop(pts, p) < 0.01 {
				continue // the two kinds of straight differ by less
			}
			checked++
			if got, want := len(snapshot.Match(y, x, nil)) == 1, loop.ContainsPoint(p); got != want {
				t.Fatalf("%v,%v: inside %v, want %v, of %v", y, x, got, want, ring)
			}
		}
	}
	if checked < 100_000 {
		t.Fatalf("only %d points", checked)
	}
}

// nearLoop is the distance, in metres, of p from a loop's edges.
func nearLoop(pts []s2.Point, p s2.Point) float64 {
	least := math.Inf(1)
	for i := range pts {
		d := s2.DistanceFromSegment(p, pts[i], pts[(i+1)%len(pts)])
		least = math.Min(least, float64(d)*earthRadius)
	}
	return least
}

// fromLine is the distance, in metres, of a point from a segment that is
// straight in longitude and latitude, by trying many places on it.
func fromLine(lat, lon float64, a, b [2]float64) float64 {
	f := func(s float64) float64 {
		return metres(lat, lon, a[1]+s*(b[1]-a[1]), a[0]+s*(b[0]-a[0]))
	}
	const n = 300
	best := 0.0
	for i := range n + 1 {
		if s := float64(i) / n; f(s) < f(best) {
			best = s
		}
	}
	lo, hi := math.Max(0, best-1.0/n), math.Min(1, best+1.0/n)
	for range 60 {
		x, y := lo+(hi-lo)/3, hi-(hi-lo)/3
		if f(x) < f(y) {
			hi = y
		} else {
			lo = x
		}
	}
	return f((lo + hi) / 2)
}

// Corridors, and the buffer around polygons, against trying many places on
// each edge: short and long edges, at all latitudes.
func TestDistancesFromEdgesMatchOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	checked := 0
	for range 500 {
		lat, lon := r.Float64()*170-85, r.Float64()*300-150
		length := math.Pow(10, -3+4*r.Float64())
		a := [2]float64{lon, lat}
		b := [2]float64{lon + length*(2*r.Float64()-1), math.Max(-89, math.Min(89, lat+length*(2*r.Float64()-1)))}
		radius := math.Pow(10, 1+4.5*r.Float64())
		f := mustParse(t, feature("l", fmt.Sprintf(`{"radius_m":%v}`, radius),
			fmt.Sprintf(`{"type":"LineString","coordinates":[[%v,%v],[%v,%v]]}`, a[0], a[1], b[0], b[1])))[0]
		snapshot := mustIndex(t, f).Snapshot()
		for range 10 {
			s := r.Float64()
			q := offset(r, a[1]+s*(b[1]-a[1]), a[0]+s*(b[0]-a[0]), radius)
			m := fromLine(q[0], q[1], a, b)
			if q[1] < 0 != (lon < 0) && math.Abs(lon) > 90 || math.Abs(m-radius) < 0.01+1e-6*radius {
				continue
			}
			checked++
			if got, want := len(snapshot.Match(q[0], q[1], nil)) == 1, m < radius; got != want {
				t.Fatalf("%v is %v m from the line %v %v, inside %v m: %v", q, m, a, b, radius, got)
			}
			extra := radius * r.Float64()
			if math.Abs(m-radius-extra) > 0.01+1e-6*radius {
				if got, want := f.Within(q[0], q[1], extra), m < radius+extra; got != want {
					t.Fatalf("%v is %v m from the line, within %v+%v m: %v", q, m, radius, extra, got)
				}
			}
		}
	}
	if checked < 3000 {
		t.Fatalf("only %d points", checked)
	}
}

// fewer is how often a test repeats itself with -short, as under the race
// detector.
func fewer(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

func TestPolygonBuffersMatchOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 6))
	checked := 0
	for range fewer(60) {
		ring := star(r, 3+r.IntN(60), 10, 50, 1, 2)
		fences, err := geofence.ParseFences([]byte(polygon("p", naive{ring}.geojson())))
		if err != nil {
			continue
		}
		for range 20 {
			x, y := 8+4*r.Float64(), 48+4*r.Float64()
			if fences[0].Contains(y, x) {
				continue
			}
			least := math.Inf(1)
			for i := 1; i < len(ring); i++ {
				least = math.Min(least, fromLine(y, x, ring[i-1], ring[i]))
			}
			for _, k := range []float64{0.5, 0.999, 1.001, 2} {
				checked++
				if got := fences[0].Within(y, x, least*k); got != (k > 1) {
					t.Fatalf("%v,%v is %v m away, within %v times that: %v", x, y, least, k, got)
				}
			}
		}
	}
	if checked < fewer(1000) {
		t.Fatalf("only %d checks", checked)
	}
}

package geofence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"
	"github.com/tidwall/geojson/geometry"
	"github.com/tidwall/rtree"

	"github.com/tripline/tripline/geofence"
)

// largest is the district with the most vertices.
func largest(tb testing.TB) (best *geofence.Fence, vertices int) {
	for _, f := range districts(tb) {
		n := 0
		for _, rings := range f.Rings() {
			for _, ring := range rings {
				n += len(ring)
			}
		}
		if n > vertices {
			best, vertices = f, n
		}
	}
	return best, vertices
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
	district, vertices := largest(b)
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
	b.ReportMetric(float64(vertices), "vertices")
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

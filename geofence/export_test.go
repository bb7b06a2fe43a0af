package geofence

import "math"

// AlwaysSearch makes the tracker do without the boxes in which nothing can
// change.
func (t *Tracker) AlwaysSearch() { t.searches = true }

// ClearAround is half the height, in degrees, of a box around the point that
// the fence's boundary doesn't touch.
func (f *Fence) ClearAround(lat, lon, limit float64) float64 {
	return f.shape.clear(point{lon, lat}, math.Cos((math.Abs(lat)+limit)*radians), limit)
}

// Within says whether the point is at most m metres from the fence.
func (f *Fence) Within(lat, lon, m float64) bool { return f.shape.within(point{lon, lat}, m) }

// Crossing is where a segment, longitudes and latitudes, touches the fence.
func (f *Fence) Crossing(lon1, lat1, lon2, lat2 float64) (from, to float64, ok bool) {
	return f.shape.crossing(point{lon1, lat1}, point{lon2, lat2})
}

// OrientSign is the sign of the exact orientation of three points.
func OrientSign(ax, ay, bx, by, cx, cy float64) int {
	return sign(orient(point{ax, ay}, point{bx, by}, point{cx, cy}))
}

// PolygonFence makes a fence of one closed ring of longitudes and latitudes.
func PolygonFence(id string, ring [][2]float64) *Fence {
	pts := make([]point, len(ring))
	for i, p := range ring {
		pts[i] = point{p[0], p[1]}
	}
	p := newPolygon([][]point{pts})
	f := &Fence{ID: id, shape: polygons{p}}
	if p.grid == nil {
		f.ring = p.pts
	}
	return f
}

// Bounds are the least and the most longitude and latitude of a fence of
// polygons.
func (f *Fence) Bounds() (lo, hi [2]float64) {
	var b box
	for i, c := range f.shape.boxes(nil) {
		if i == 0 {
			b = c
		}
		b = b.union(c)
	}
	return [2]float64{b.min.x, b.min.y}, [2]float64{b.max.x, b.max.y}
}

// Rings are the rings of a fence's polygons.
func (f *Fence) Rings() (all [][][][2]float64) {
	for _, p := range f.shape.(polygons) {
		var rings [][][2]float64
		for i := range p.ends {
			var ring [][2]float64
			for _, q := range p.ring(i) {
				ring = append(ring, [2]float64{q.x, q.y})
			}
			rings = append(rings, ring)
		}
		all = append(all, rings)
	}
	return all
}

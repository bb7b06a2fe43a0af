package geofence

// AlwaysSearch makes the tracker do without the boxes in which nothing can
// change.
func (t *Tracker) AlwaysSearch() { t.searches = true }

// ClearAround is half the height, in degrees, of a box around the point that
// the fence's boundary doesn't touch.
func (f *Fence) ClearAround(lat, lon, limit float64) float64 {
	return f.shape.clear(point{lon, lat}, limit)
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

package geofence

// circle is everything within a distance of a point, on the sphere: also over
// the antimeridian and over a pole.
type circle struct {
	centre  point
	radiusM float64
	hav     float64 // haversine of the radius
}

func newCircle(centre point, radiusM float64) *circle {
	return &circle{centre, radiusM, havOf(radiusM)}
}

func (c *circle) contains(p point) bool { return haversine(c.centre, p) <= c.hav }

func (c *circle) within(p point, m float64) bool {
	return haversine(c.centre, p) <= havOf(c.radiusM+m)
}

func (c *circle) boxes(dst []box) []box { return append(dst, boxAround(c.centre, c.radiusM)) }

func (c *circle) crossing(a, b point) (from, to float64, ok bool) {
	t, h := nearest(a, b, c.centre)
	if h > c.hav {
		return 0, 0, false
	}
	inside := func(s float64) bool { return c.contains(lerp(a, b, s)) }
	return bisect(t, 0, inside), bisect(t, 1, inside), true
}

// bisect finds where, between a place that is inside and one that is not, the
// boundary is; if both are inside, out is it.
func bisect(in, out float64, inside func(t float64) bool) float64 {
	if inside(out) {
		return out
	}
	for range 40 { // finer than a millisecond of any segment
		mid := (in + out) / 2
		if inside(mid) {
			in = mid
		} else {
			out = mid
		}
	}
	return in
}

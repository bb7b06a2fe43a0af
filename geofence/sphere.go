package geofence

import "math"

// earthRadiusM is the mean radius of the earth, in metres.
const earthRadiusM = 6_371_008.8

const (
	radians         = math.Pi / 180
	metresPerDegree = earthRadiusM * radians
	// halfCircleM is the longest distance on the earth, in metres.
	halfCircleM = earthRadiusM * math.Pi
)

// point is a position in degrees: x is the longitude, y the latitude. In a
// shape's own frame x may pass 180, so that a ring over the antimeridian
// doesn't jump.
type point struct{ x, y float64 }

func (p point) shift(dx float64) point { return point{p.x + dx, p.y} }

// box is a closed rectangle in degrees.
type box struct{ min, max point }

func boxOf(pts []point) box {
	b := box{pts[0], pts[0]}
	for _, p := range pts[1:] {
		b.min.x, b.min.y = min(b.min.x, p.x), min(b.min.y, p.y)
		b.max.x, b.max.y = max(b.max.x, p.x), max(b.max.y, p.y)
	}
	return b
}

func (b box) contains(p point) bool {
	return p.x >= b.min.x && p.x <= b.max.x && p.y >= b.min.y && p.y <= b.max.y
}

func (b box) intersects(c box) bool {
	return b.min.x <= c.max.x && c.min.x <= b.max.x && b.min.y <= c.max.y && c.min.y <= b.max.y
}

func (b box) union(c box) box {
	return box{
		point{min(b.min.x, c.min.x), min(b.min.y, c.min.y)},
		point{max(b.max.x, c.max.x), max(b.max.y, c.max.y)},
	}
}

func (b box) shift(dx float64) box { return box{b.min.shift(dx), b.max.shift(dx)} }

// grow widens the box by m metres on every side. Near a pole that is the
// whole circle of latitude.
func (b box) grow(m float64) box {
	lo, hi := boxAround(b.min, m), boxAround(b.max, m)
	wide := max(lo.max.x-lo.min.x, hi.max.x-hi.min.x) / 2
	if b.max.x-b.min.x+2*wide >= 360 {
		return box{point{-540, lo.min.y}, point{540, hi.max.y}}
	}
	return box{point{b.min.x - wide, lo.min.y}, point{b.max.x + wide, hi.max.y}}
}

// boxAround returns a box that surely holds everything within m metres of p.
// Its x may pass 180; it is 360 wide if the circle holds a pole.
func boxAround(p point, m float64) box {
	const slack = 1e-9 // degrees, a tenth of a millimetre: more than any rounding
	angle := m / earthRadiusM
	dy := angle/radians + slack
	lo, hi := p.y-dy, p.y+dy
	dx := 180.0
	if lo > -90 && hi < 90 && angle < math.Pi/2 {
		if s := math.Sin(angle) / math.Cos(p.y*radians); s < 1 {
			dx = math.Asin(s)/radians + slack
		}
	}
	return box{point{p.x - dx, max(lo, -90)}, point{p.x + dx, min(hi, 90)}}
}

// haversine returns the haversine of the angle between two points: it rises
// with their distance from 0 to 1, and is exact for short ones.
func haversine(p, q point) float64 {
	sy := math.Sin((q.y - p.y) * (radians / 2))
	sx := math.Sin((q.x - p.x) * (radians / 2))
	return sy*sy + math.Cos(p.y*radians)*math.Cos(q.y*radians)*sx*sx
}

// havOf is the haversine of a distance in metres.
func havOf(m float64) float64 {
	s := math.Sin(min(m, halfCircleM) / (2 * earthRadiusM))
	return s * s
}

// distance is the great-circle distance in metres.
func distance(p, q point) float64 {
	return 2 * earthRadiusM * math.Asin(math.Sqrt(min(1, haversine(p, q))))
}

// lerp is the point at t, 0..1, of the segment from a to b, straight in
// longitude and latitude.
func lerp(a, b point, t float64) point {
	return point{a.x + (b.x-a.x)*t, a.y + (b.y-a.y)*t}
}

// nearest returns where, as a parameter 0..1, the segment from a to b comes
// nearest to p, and the haversine of that distance. The segment is straight in
// longitude and latitude, the distance is on the sphere.
func nearest(a, b, p point) (t, hav float64) {
	if a == b {
		return 0, haversine(a, p)
	}
	// A piece of at most one degree is close enough to a chord in space for
	// its parameter to start from; then Newton's steps settle it.
	n := max(1, math.Ceil(max(math.Abs(b.x-a.x), math.Abs(b.y-a.y))))
	hav = 2
	pv := vectorOf(p)
	from, fv := a, vectorOf(a)
	for i := 1.0; i <= n; i++ {
		to := lerp(a, b, i/n)
		tv := vectorOf(to)
		s := fv.nearestOnChord(tv, pv)
		if h := haversine(lerp(from, to, s), p); h < hav {
			t, hav = (i-1+s)/n, h
		}
		from, fv = to, tv
	}
	for range 3 {
		next, ok := newton(a, b, p, t)
		if !ok || next == t {
			break
		}
		h := haversine(lerp(a, b, next), p)
		if h >= hav {
			break
		}
		t, hav = next, h
	}
	return t, hav
}

// newton improves the parameter of the point of the segment nearest to p, by
// one step on the derivative of the cosine of the distance.
func newton(a, b, p point, t float64) (float64, bool) {
	dy, dx := (b.y-a.y)*radians, (b.x-a.x)*radians
	q := lerp(a, b, t)
	sp, cp := math.Sincos(p.y * radians)
	sq, cq := math.Sincos(q.y * radians)
	sd, cd := math.Sincos((q.x - p.x) * radians)
	slope := dy*(sp*cq-cp*sq*cd) - dx*cp*cq*sd
	curve := -dy*dy*(sp*sq+cp*cq*cd) + 2*dy*dx*cp*sq*sd - dx*dx*cp*cq*cd
	if curve >= 0 { // no maximum near here
		return t, false
	}
	return min(1, max(0, t-slope/curve)), true
}

// vector is a position as a unit vector.
type vector struct{ x, y, z float64 }

func vectorOf(p point) vector {
	sy, cy := math.Sincos(p.y * radians)
	sx, cx := math.Sincos(p.x * radians)
	return vector{cy * cx, cy * sx, sy}
}

// nearestOnChord is the parameter 0..1 of the point of the chord from v to w
// nearest to p.
func (v vector) nearestOnChord(w, p vector) float64 {
	d := vector{w.x - v.x, w.y - v.y, w.z - v.z}
	l := d.x*d.x + d.y*d.y + d.z*d.z
	if l == 0 {
		return 0
	}
	s := (p.x-v.x)*d.x + (p.y-v.y)*d.y + (p.z-v.z)*d.z
	return min(1, max(0, s/l))
}

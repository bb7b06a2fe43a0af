package geofence

import "math"

// inRing says whether p is inside the closed ring, its boundary included, by
// the parity of the edges to the right of it. It is exact.
func inRing(ring []point, p point) bool {
	inside := false
	a := ring[0]
	aAbove := a.y > p.y
	for _, b := range ring[1:] {
		bAbove := b.y > p.y
		if aAbove != bAbove {
			l := float64((a.x - p.x) * (b.y - p.y))
			r := float64((a.y - p.y) * (b.x - p.x))
			side := l - r
			if bound := orientBound * (math.Abs(l) + math.Abs(r)); side <= bound && -side <= bound {
				side = orientExact(a, b, p)
				if side == 0 {
					return true
				}
			}
			if (side > 0) == bAbove {
				inside = !inside
			}
		} else if b.y == p.y && onLevel(a, b, p) {
			return true
		}
		a, aAbove = b, bAbove
	}
	return inside
}

// onLevel says whether p touches the edge from a to b, which ends at p's
// latitude without passing through it.
func onLevel(a, b, p point) bool {
	if b.x == p.x {
		return true
	}
	return a.y == p.y && (a.x < p.x) != (b.x < p.x)
}

// onEdge says whether p is on the edge from a to b, ends included.
func onEdge(a, b, p point) bool {
	return p.x >= min(a.x, b.x) && p.x <= max(a.x, b.x) &&
		p.y >= min(a.y, b.y) && p.y <= max(a.y, b.y) && orient(a, b, p) == 0
}

// signedArea is twice the ring's area in square degrees, positive if it runs
// counter-clockwise.
func signedArea(ring []point) float64 {
	o := ring[0] // near the ring, so that little cancels
	sum := 0.0
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		sum += (a.x-o.x)*(b.y-o.y) - (b.x-o.x)*(a.y-o.y)
	}
	return sum
}

// meet returns where the segments ab and cd meet, as parameters along ab:
// from..to, equal unless they overlap along a line.
func meet(a, b, c, d point) (from, to float64, ok bool) {
	o1, o2 := orient(c, d, a), orient(c, d, b)
	if o1 == 0 && o2 == 0 {
		return overlap(a, b, c, d)
	}
	if (o1 > 0 && o2 > 0) || (o1 < 0 && o2 < 0) {
		return 0, 0, false
	}
	o3, o4 := orient(a, b, c), orient(a, b, d)
	if (o3 > 0 && o4 > 0) || (o3 < 0 && o4 < 0) {
		return 0, 0, false
	}
	t := min(1, max(0, o1/(o1-o2)))
	return t, t, true
}

// overlap is meet for segments on one line.
func overlap(a, b, c, d point) (from, to float64, ok bool) {
	if a == b {
		return 0, 0, onEdge(c, d, a)
	}
	along := func(p point) float64 {
		if math.Abs(b.x-a.x) >= math.Abs(b.y-a.y) {
			return (p.x - a.x) / (b.x - a.x)
		}
		return (p.y - a.y) / (b.y - a.y)
	}
	s, t := along(c), along(d)
	from, to = max(0, min(s, t)), min(1, max(s, t))
	return from, to, from <= to
}

package geofence

import "iter"

// polygon is a shell with holes, in a frame in which no ring jumps at the
// antimeridian: min.x is in -180..180, max.x may pass 180.
type polygon struct {
	box box
	// pts are the closed rings, one after another; ends are the indices after
	// their last points. The first ring is the shell.
	pts  []point
	ends []int32
	grid *grid // nil for a small polygon
	// written are the rings as the file has them, where that differs from pts.
	written [][]point
}

func newPolygon(rings [][]point) *polygon {
	p := &polygon{}
	n := 0
	for _, r := range rings {
		n += len(r)
	}
	p.pts = make([]point, 0, n)
	p.ends = make([]int32, 0, len(rings))
	for _, r := range rings {
		p.pts = append(p.pts, r...)
		p.ends = append(p.ends, int32(len(p.pts)))
	}
	p.box = boxOf(p.pts[:p.ends[0]])
	if n-len(rings) >= gridMinEdges {
		p.grid = newGrid(p)
	}
	return p
}

// edges yields the ring's number and the index of each edge's first point; the
// second is the next point.
func (p *polygon) edges() iter.Seq2[int, int] {
	return func(yield func(ring, i int) bool) {
		from := 0
		for r, end := range p.ends {
			for i := from; i < int(end)-1; i++ {
				if !yield(r, i) {
					return
				}
			}
			from = int(end)
		}
	}
}

func (p *polygon) ring(i int) []point {
	if i == 0 {
		return p.pts[:p.ends[0]]
	}
	return p.pts[p.ends[i-1]:p.ends[i]]
}

// contains says whether q, in the polygon's frame, is inside or on a boundary.
func (p *polygon) contains(q point) bool {
	if !p.box.contains(q) {
		return false
	}
	if p.grid != nil {
		return p.grid.contains(p, q)
	}
	if len(p.ends) == 1 {
		return inRing(p.pts, q)
	}
	inside := false
	for i := range p.ends {
		ring := p.ring(i)
		if inRing(ring, q) {
			if i > 0 && onRing(ring, q) {
				return true
			}
			inside = !inside
		}
	}
	return inside
}

func onRing(ring []point, q point) bool {
	for i := 1; i < len(ring); i++ {
		if onEdge(ring[i-1], ring[i], q) {
			return true
		}
	}
	return false
}

// near calls yield for at least the edges that touch b.
func (p *polygon) near(b box, yield func(i uint32) bool) {
	if p.grid != nil {
		p.grid.near(b, yield)
		return
	}
	for _, i := range p.edges() {
		if !yield(uint32(i)) {
			return
		}
	}
}

// edgeWithin says whether an edge comes within m metres of q; around is a box
// that holds all points so near.
func (p *polygon) edgeWithin(q point, around box, hav float64) (found bool) {
	p.near(around, func(i uint32) bool {
		a, b := p.pts[i], p.pts[i+1]
		if boxOf([]point{a, b}).intersects(around) {
			_, h := nearest(a, b, q)
			found = h <= hav
		}
		return !found
	})
	return found
}

// crossing returns the first and the last place, as parameters of the segment
// from a to b, where it touches the polygon's boundary.
func (p *polygon) crossing(a, b point) (from, to float64, ok bool) {
	around := boxOf([]point{a, b})
	from, to = 2, -1
	p.near(around, func(i uint32) bool {
		if s, t, met := meet(a, b, p.pts[i], p.pts[i+1]); met {
			from, to = min(from, s), max(to, t)
		}
		return true
	})
	return from, to, to >= 0
}

// polygons is a shape of one or more polygons; their union counts.
type polygons []*polygon

// frames are the shifts at which a point may lie in a polygon's frame.
var frames = [...]float64{0, 360, -360}

func (ps polygons) contains(q point) bool {
	for _, p := range ps {
		for _, dx := range frames {
			if p.contains(q.shift(dx)) {
				return true
			}
		}
	}
	return false
}

func (ps polygons) within(q point, m float64) bool {
	if ps.contains(q) {
		return true
	}
	around, hav := boxAround(q, m), havOf(m)
	for _, p := range ps {
		for _, dx := range frames {
			b := around.shift(dx)
			if p.box.intersects(b) && p.edgeWithin(q.shift(dx), b, hav) {
				return true
			}
		}
	}
	return false
}

func (ps polygons) crossing(a, b point) (from, to float64, ok bool) {
	segment := boxOf([]point{a, b})
	from, to = 2, -1
	for _, p := range ps {
		for _, dx := range frames {
			if !p.box.intersects(segment.shift(dx)) {
				continue
			}
			if s, t, met := p.crossing(a.shift(dx), b.shift(dx)); met {
				from, to = min(from, s), max(to, t)
			}
		}
	}
	return from, to, to >= 0
}

func (ps polygons) boxes(dst []box) []box {
	for _, p := range ps {
		dst = append(dst, p.box)
	}
	return dst
}

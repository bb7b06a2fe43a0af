package geofence

import (
	"fmt"
	"math"
	"slices"
)

// polygonOf judges a polygon's rings and puts them into one frame.
func polygonOf(at int, lines []written) (*polygon, *placeError) {
	if len(lines) == 0 {
		return nil, &placeError{at, "the polygon is empty"}
	}
	rings := make([][]point, len(lines))
	places := make([][]int, len(lines))
	clean := make([][]point, len(lines)) // as written, without repeated points
	moved := false
	for i, w := range lines {
		w, e := checkRing(w)
		if e != nil {
			return nil, e
		}
		ring, msg := unwrapRing(w.pts)
		if msg != "" {
			return nil, &placeError{w.at, msg}
		}
		if i > 0 {
			ring = besideShell(ring, boxOf(rings[0]))
		}
		if b := boxOf(ring); b.min.x == b.max.x || b.min.y == b.max.y {
			return nil, &placeError{w.at, "the ring has no area"}
		}
		rings[i], places[i], clean[i] = ring, w.offs, w.pts
		moved = moved || !slices.Equal(ring, w.pts)
	}
	p := newPolygon(rings)
	if moved {
		for i, ring := range clean {
			clean[i] = slices.Clone(ring)
		}
		p.written = clean
	}
	if i, where, found := p.selfCrossing(); found {
		return nil, &placeError{p.offset(i, places), fmt.Sprintf(
			"the boundary crosses itself at longitude %s, latitude %s",
			plain(wrapLon(where.x)), plain(where.y))}
	}
	for i, ring := range rings {
		if b := boxOf(ring); math.Abs(signedArea(ring)) <= 1e-14*(b.max.x-b.min.x)*(b.max.y-b.min.y) {
			return nil, &placeError{lines[i].at, "the ring has no area"}
		}
	}
	if i, outside := p.holeOutside(); outside {
		return nil, &placeError{lines[i].at, "the hole is outside its shell"}
	}
	return p, nil
}

// checkRing refuses a ring that isn't one, and drops points that repeat the
// one before.
func checkRing(w written) (written, *placeError) {
	n := len(w.pts)
	switch {
	case n == 0:
		return w, &placeError{w.at, "the ring is empty"}
	case w.pts[0] != w.pts[n-1]:
		return w, &placeError{w.offs[n-1], fmt.Sprintf("the ring is not closed: it begins at %s and ends at %s",
			appendPosition(nil, w.pts[0]), appendPosition(nil, w.pts[n-1]))}
	case n < 4:
		return w, &placeError{w.at, fmt.Sprintf("the ring has %d positions, but at least 4 are needed", n)}
	}
	kept := 1
	for i := 1; i < n; i++ {
		if w.pts[i] != w.pts[kept-1] {
			w.pts[kept], w.offs[kept] = w.pts[i], w.offs[i]
			kept++
		}
	}
	w.pts, w.offs = w.pts[:kept], w.offs[:kept]
	if kept < 4 {
		return w, &placeError{w.at, "the ring has no area"}
	}
	return w, nil
}

// besideShell moves a hole into the shell's frame.
func besideShell(hole []point, shell box) []point {
	b := boxOf(hole)
	for _, dx := range frames {
		if s := b.shift(dx); dx != 0 && s.min.x >= shell.min.x && s.max.x <= shell.max.x &&
			(b.min.x < shell.min.x || b.max.x > shell.max.x) {
			moved := make([]point, len(hole))
			for i, p := range hole {
				moved[i] = p.shift(dx)
			}
			return moved
		}
	}
	return hole
}

func wrapLon(x float64) float64 {
	if x > 180 {
		return x - 360
	}
	return x
}

// offset is the place in the file of an edge's first point.
func (p *polygon) offset(i int, places [][]int) int {
	from := 0
	for r, end := range p.ends {
		if i < int(end) {
			return places[r][min(i-from, len(places[r])-1)]
		}
		from = int(end)
	}
	return 0
}

// selfCrossing finds a place where two edges cross. Rings may touch
// themselves and one another, and may run along one another: what is inside
// is clear then. So it is where a slip of the pen crosses (see slips).
func (p *polygon) selfCrossing() (edge int, where point, found bool) {
	slips := &slips{}
	if p.grid == nil {
		return p.crossingAmong(slices.Collect(p.edgeIDs), slips)
	}
	for c := range p.grid.nx * p.grid.ny {
		if ids := p.grid.cell(c); len(ids) > 1 {
			if edge, where, found = p.crossingAmong(ids, slips); found {
				return edge, where, found
			}
		}
	}
	return 0, point{}, false
}

func (p *polygon) edgeIDs(yield func(uint32) bool) {
	for _, i := range p.edges() {
		if !yield(uint32(i)) {
			return
		}
	}
}

func (p *polygon) crossingAmong(ids []uint32, slips *slips) (edge int, where point, found bool) {
	for n, i := range ids {
		a, b := p.pts[i], p.pts[i+1]
		lox, hix := min(a.x, b.x), max(a.x, b.x)
		loy, hiy := min(a.y, b.y), max(a.y, b.y)
		for _, j := range ids[n+1:] {
			c, d := p.pts[j], p.pts[j+1]
			if c.x < lox && d.x < lox || c.x > hix && d.x > hix ||
				c.y < loy && d.y < loy || c.y > hiy && d.y > hiy {
				continue
			}
			if where, found = p.cross(int(i), int(j)); found && !slips.take(p, int(i), int(j), where) {
				return int(i), where, true
			}
		}
	}
	return 0, point{}, false
}

// slips counts crossings that are let pass: those of a ring with itself that
// cut off less than a millionth of its area. Published boundaries have them,
// from rounding and digitising, and no reading of them makes a difference.
type slips struct{ n int }

const (
	slipShare = 1e-6
	maxSlips  = 256 // each costs a walk along the ring
)

func (s *slips) take(p *polygon, i, j int, at point) bool {
	i, j = min(i, j), max(i, j)
	r := p.ringOf(i)
	if s.n++; s.n > maxSlips || p.ringOf(j) != r {
		return false
	}
	loop := append([]point{at}, p.pts[i+1:j+1]...)
	cut := math.Abs(signedArea(append(loop, at)))
	whole := math.Abs(signedArea(p.ring(r)))
	return min(cut, math.Abs(whole-cut)) <= slipShare*whole
}

func (p *polygon) ringOf(i int) int {
	for r, end := range p.ends {
		if i < int(end) {
			return r
		}
	}
	return len(p.ends)
}

// cross says whether two edges cross: in the middle of both, or where one
// begins in the middle of the other and its ring goes on from there to the
// other side.
func (p *polygon) cross(i, j int) (point, bool) {
	a, b, c, d := p.pts[i], p.pts[i+1], p.pts[j], p.pts[j+1]
	oc, od := sign(orient(a, b, c)), sign(orient(a, b, d))
	if oc*od > 0 {
		return point{}, false
	}
	oa, ob := orient(c, d, a), orient(c, d, b)
	switch {
	case oc*od < 0 && sign(oa)*sign(ob) < 0:
		return lerp(a, b, oa/(oa-ob)), true
	case oc == 0 && od != 0 && c != a && c != b && onEdge(a, b, c):
		return c, sign(orient(a, b, p.before(j)))*od < 0
	case oa == 0 && ob != 0 && a != c && a != d && onEdge(c, d, a):
		return a, sign(orient(c, d, p.before(i)))*sign(ob) < 0
	}
	return point{}, false
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// before is the point before that of index i in its ring.
func (p *polygon) before(i int) point {
	from := 0
	for _, end := range p.ends {
		if i == from {
			return p.pts[end-2]
		}
		if i < int(end) {
			break
		}
		from = int(end)
	}
	return p.pts[i-1]
}

// holeOutside finds a hole with a point outside the shell. No edges cross.
func (p *polygon) holeOutside() (ring int, outside bool) {
	if len(p.ends) == 1 {
		return 0, false
	}
	shell := newPolygon([][]point{p.ring(0)})
	for i := 1; i < len(p.ends); i++ {
		for _, q := range p.ring(i) {
			if !shell.contains(q) {
				return i, true
			}
			if !onRing(p.ring(0), q) {
				break // no crossing, so the others are inside as well
			}
		}
	}
	return 0, false
}

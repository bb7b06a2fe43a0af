package geofence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// crossing is where a polygon's boundary crosses itself.
type crossing struct {
	edge    int // the index of its first point
	at      point
	tangled bool // too much to check; at is somewhere in the tangle
}

func (c *crossing) msg() string {
	lon := c.at.x
	if lon > 180 {
		lon -= 360
	}
	place := fmt.Sprintf("longitude %s, latitude %s", plain(lon), plain(c.at.y))
	if c.tangled {
		return "too many edges lie close together to be checked for crossings, near " + place + ": simplify the boundary"
	}
	return "the boundary crosses itself at " + place
}

// crossings looks for one, cell by cell of the polygon's grid.
type crossings struct {
	p     *polygon
	slips int
	tests int
	lanes []lane // scratch
}

const (
	// slipShare: a ring that crosses itself, but cuts off less than this
	// share of its area, is let pass. Published boundaries do that, from
	// rounding and digitising, and no reading of it makes a difference.
	slipShare = 1e-6
	maxSlips  = 256 // each costs a walk along the ring
	// maxTests bounds the work, which is quadratic for boundaries that run
	// to and fro in a narrow space; it takes about a second.
	maxTests = 1 << 27
	// laneEdges is from how many edges in a cell on it pays off to sort them.
	laneEdges = 24
)

// selfCrossing finds a place where two edges cross; nil is none. Rings may
// touch themselves and one another, and may run along one another: what is
// inside is clear then. So it is where a slip of the pen crosses.
func (p *polygon) selfCrossing() *crossing {
	s := &crossings{p: p}
	if p.grid == nil {
		ids := make([]uint32, 0, gridMinEdges)
		for _, i := range p.edges() {
			ids = append(ids, uint32(i))
		}
		return s.among(ids)
	}
	g := p.grid
	for row := range g.ny {
		for col := range g.nx {
			ids := g.cell(row*g.nx + col)
			var found *crossing
			if len(ids) < laneEdges {
				found = s.among(ids)
			} else {
				found = s.amongLanes(ids, g.cellBox(col, row))
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

// cellBox is a cell with a margin.
func (g *grid) cellBox(col, row int) box {
	c := g.centre(col, row)
	const half = 0.5 + 0x1p-12
	return box{
		point{c.x - half*g.width, c.y - half*g.high},
		point{c.x + half*g.width, c.y + half*g.high},
	}
}

// among tests all pairs.
func (s *crossings) among(ids []uint32) *crossing {
	for n, i := range ids {
		a, b := s.p.pts[i], s.p.pts[i+1]
		lox, hix := min(a.x, b.x), max(a.x, b.x)
		loy, hiy := min(a.y, b.y), max(a.y, b.y)
		for _, j := range ids[n+1:] {
			c, d := s.p.pts[j], s.p.pts[j+1]
			if c.x < lox && d.x < lox || c.x > hix && d.x > hix ||
				c.y < loy && d.y < loy || c.y > hiy && d.y > hiy {
				continue
			}
			if found := s.test(int(i), int(j)); found != nil {
				return found
			}
		}
	}
	return nil
}

// lane is the part of an edge in a cell, as seen along the direction in which
// most of the cell's edges run: it spans from..to.
type lane struct {
	id       uint32
	from, to float64
}

// amongLanes tests the pairs whose lanes overlap. Many edges in one cell that
// don't cross run nearly in parallel, so that few lanes do.
func (s *crossings) amongLanes(ids []uint32, cell box) *crossing {
	var cos2, sin2 float64 // of twice the direction: opposite ones are one
	for _, i := range ids {
		a, b := s.p.pts[i], s.p.pts[i+1]
		dx, dy := b.x-a.x, b.y-a.y
		l := math.Hypot(dx, dy)
		cos2 += (dx*dx - dy*dy) / l
		sin2 += 2 * dx * dy / l
	}
	ny, nx := math.Sincos(math.Atan2(sin2, cos2)/2 + math.Pi/2)
	slack := (cell.max.x - cell.min.x + cell.max.y - cell.min.y) * 0x1p-30
	s.lanes = s.lanes[:0]
	for _, i := range ids {
		a, b, ok := clip(s.p.pts[i], s.p.pts[i+1], cell)
		if !ok {
			continue
		}
		u := (a.x-cell.min.x)*nx + (a.y-cell.min.y)*ny
		v := (b.x-cell.min.x)*nx + (b.y-cell.min.y)*ny
		s.lanes = append(s.lanes, lane{i, min(u, v) - slack, max(u, v) + slack})
	}
	slices.SortFunc(s.lanes, func(a, b lane) int { return cmp.Compare(a.from, b.from) })
	for n, l := range s.lanes {
		for _, m := range s.lanes[n+1:] {
			if m.from > l.to {
				break
			}
			if found := s.test(int(l.id), int(m.id)); found != nil {
				return found
			}
		}
	}
	return nil
}

// clip returns the part of a segment in a box, if there is one.
func clip(a, b point, in box) (from, to point, ok bool) {
	t0, t1 := 0.0, 1.0
	side := func(d, gap float64) bool { // keeps where t*d <= gap
		switch {
		case d == 0:
			return gap >= 0
		case d > 0:
			t1 = min(t1, gap/d)
		default:
			t0 = max(t0, gap/d)
		}
		return t0 <= t1
	}
	dx, dy := b.x-a.x, b.y-a.y
	if !side(dx, in.max.x-a.x) || !side(-dx, a.x-in.min.x) || !side(dy, in.max.y-a.y) || !side(-dy, a.y-in.min.y) {
		return a, b, false
	}
	return lerp(a, b, t0), lerp(a, b, t1), true
}

// test says whether a pair of edges crosses, and not by a slip.
func (s *crossings) test(i, j int) *crossing {
	if s.tests++; s.tests > maxTests {
		return &crossing{i, s.p.pts[i], true}
	}
	if at, found := s.p.cross(i, j); found && !s.slip(min(i, j), max(i, j), at) {
		return &crossing{i, at, false}
	}
	return nil
}

// slip says whether a crossing cuts next to nothing off its ring.
func (s *crossings) slip(i, j int, at point) bool {
	r := s.p.ringOf(i)
	if s.slips++; s.slips > maxSlips || s.p.ringOf(j) != r {
		return false
	}
	loop := append([]point{at}, s.p.pts[i+1:j+1]...)
	cut := math.Abs(signedArea(append(loop, at)))
	whole := math.Abs(signedArea(s.p.ring(r)))
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

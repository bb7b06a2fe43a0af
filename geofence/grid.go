package geofence

import "math"

// grid is the edge index of a large polygon: a raster of cells over it, each
// with the edges that pass through it and with whether its centre is inside.
// A point is judged by walking from it to its cell's centre, along the
// parallel and then the meridian, and counting the cell's edges on the way.
// So the cost follows the edges nearby, not all.
//
// All tests are exact. A point on no edge is taken to be moved by an
// infinitely small step to the north-east, farther east than north, so that a
// path through a vertex needs no special case.
type grid struct {
	box          box
	nx, ny       int
	width, high  float64  // of a cell, in degrees
	perX, perY   float64  // cells per degree
	start        []uint32 // cell c has the edges ids[start[c]:start[c+1]]
	ids          []uint32 // an edge is the index of its first point
	centreInside []uint64 // one bit per cell
}

const (
	gridMinEdges      = 33 // below this a scan of the ring is as fast
	gridCellsPerEdge  = 2
	gridMaxCells      = 1 << 22
	gridMaxIDsPerEdge = 24 // long edges pass many cells: then cells grow
)

// newGrid indexes the polygon's edges.
func newGrid(p *polygon) *grid {
	n := 0
	for range p.edges() {
		n++
	}
	for cells := min(gridCellsPerEdge*n, gridMaxCells); ; cells /= 2 {
		g := shapeGrid(p.box, cells)
		if total := g.count(p); total <= gridMaxIDsPerEdge*n || cells < 64 {
			g.fill(p)
			g.judgeCentres(p)
			return g
		}
	}
}

// shapeGrid lays about the given number of roughly square cells over a box.
func shapeGrid(b box, cells int) *grid {
	w, h := b.max.x-b.min.x, b.max.y-b.min.y
	// A little wider than the polygon, so that what lies left of the first
	// column is outside.
	b.min.x -= w * 0x1p-20
	b.max.x += w * 0x1p-20
	b.min.y -= h * 0x1p-20
	b.max.y += h * 0x1p-20
	w, h = b.max.x-b.min.x, b.max.y-b.min.y
	nx := int(min(float64(cells), max(1, math.Round(math.Sqrt(float64(cells)*w/h)))))
	ny := max(1, cells/nx)
	return &grid{
		box: b, nx: nx, ny: ny,
		width: w / float64(nx), high: h / float64(ny),
		perX: float64(nx) / w, perY: float64(ny) / h,
		start: make([]uint32, nx*ny+1),
	}
}

func (g *grid) column(x float64) int {
	return min(g.nx-1, max(0, int((x-g.box.min.x)*g.perX)))
}

func (g *grid) row(y float64) int {
	return min(g.ny-1, max(0, int((y-g.box.min.y)*g.perY)))
}

func (g *grid) centre(col, row int) point {
	return point{
		g.box.min.x + (float64(col)+0.5)*g.width,
		g.box.min.y + (float64(row)+0.5)*g.high,
	}
}

func (g *grid) cell(c int) []uint32 { return g.ids[g.start[c]:g.start[c+1]] }

// span calls yield for each row that the edge touches, with the columns that
// it touches there. It errs on the side of more, which does no harm.
func (g *grid) span(a, b point, yield func(row, first, last int)) {
	if a.y > b.y {
		a, b = b, a
	}
	slackX, slackY := g.width*0x1p-16, g.high*0x1p-16
	lo, hi := g.row(a.y-slackY), g.row(b.y+slackY)
	left, right := min(a.x, b.x)-slackX, max(a.x, b.x)+slackX
	if lo == hi {
		yield(lo, g.column(left), g.column(right))
		return
	}
	slope := (b.x - a.x) / (b.y - a.y)
	for row := lo; row <= hi; row++ {
		bottom := g.box.min.y + float64(row)*g.high - slackY
		x1 := a.x + (max(bottom, a.y)-a.y)*slope
		x2 := a.x + (min(bottom+g.high+2*slackY, b.y)-a.y)*slope
		yield(row,
			g.column(max(left, min(x1, x2)-slackX)),
			g.column(min(right, max(x1, x2)+slackX)))
	}
}

// count leaves the number of edges of cell c in start[c+1], and returns the
// sum.
func (g *grid) count(p *polygon) (total int) {
	for _, a := range p.edges() {
		g.span(p.pts[a], p.pts[a+1], func(row, first, last int) {
			for col := first; col <= last; col++ {
				g.start[row*g.nx+col+1]++
			}
			total += last - first + 1
		})
	}
	return total
}

func (g *grid) fill(p *polygon) {
	for c := range g.nx * g.ny {
		g.start[c+1] += g.start[c]
	}
	g.ids = make([]uint32, g.start[g.nx*g.ny])
	next := make([]uint32, g.nx*g.ny)
	copy(next, g.start)
	for _, a := range p.edges() {
		g.span(p.pts[a], p.pts[a+1], func(row, first, last int) {
			for col := first; col <= last; col++ {
				c := row*g.nx + col
				g.ids[next[c]] = uint32(a)
				next[c]++
			}
		})
	}
}

// judgeCentres walks along the middle of each row, from the outside.
func (g *grid) judgeCentres(p *polygon) {
	g.centreInside = make([]uint64, (g.nx*g.ny+63)/64)
	for row := range g.ny {
		inside := false
		for col := range g.nx {
			c := row*g.nx + col
			mid := g.centre(col, row)
			west := point{g.box.min.x + float64(col)*g.width, mid.y}
			east := point{g.box.min.x + float64(col+1)*g.width, mid.y}
			if g.crossings(p, c, west, mid) {
				inside = !inside
			}
			if inside {
				g.centreInside[c/64] |= 1 << (c % 64)
			}
			if g.crossings(p, c, mid, east) {
				inside = !inside
			}
		}
	}
}

// crossings is the parity of the edges of cell c between two points on one
// parallel.
func (g *grid) crossings(p *polygon, c int, q, r point) bool {
	odd := false
	for _, i := range g.cell(c) {
		a, b := p.pts[i], p.pts[i+1]
		if (a.y > q.y) != (b.y > q.y) && side(a, b, q) != side(a, b, r) {
			odd = !odd
		}
	}
	return odd
}

// side says whether c, moved by the infinitely small step, is left of the
// line from a to b.
func side(a, b, c point) bool {
	if o := orient(a, b, c); o != 0 {
		return o > 0
	}
	if a.y != b.y {
		return b.y < a.y
	}
	return b.x > a.x
}

// contains says whether q is inside the polygon or on its boundary.
func (g *grid) contains(p *polygon, q point) bool {
	col, row := g.column(q.x), g.row(q.y)
	c := row*g.nx + col
	inside := g.centreInside[c/64]>>(c%64)&1 != 0
	ids := g.cell(c)
	if len(ids) == 0 {
		return inside
	}
	mid := g.centre(col, row)
	corner := point{mid.x, q.y}
	west, east := min(q.x, mid.x), max(q.x, mid.x)
	south, north := min(q.y, mid.y), max(q.y, mid.y)
	for _, i := range ids {
		a, b := p.pts[i], p.pts[i+1]
		if a.x > east && b.x > east || a.x < west && b.x < west ||
			a.y > north && b.y > north || a.y < south && b.y < south {
			continue // touches no part of the path
		}
		if (a.y > q.y) != (b.y > q.y) {
			o := orient(a, b, q)
			if o == 0 {
				return true
			}
			if (o > 0) != side(a, b, corner) {
				inside = !inside
			}
		} else if b.y == q.y && onLevel(a, b, q) {
			return true
		}
		if (a.x > mid.x) != (b.x > mid.x) && side(a, b, corner) != side(a, b, mid) {
			inside = !inside
		}
	}
	return inside
}

// near calls yield for the edges of all cells that b touches, some of them
// more than once, until it returns false.
func (g *grid) near(b box, yield func(i uint32) bool) {
	if !g.box.intersects(b) {
		return
	}
	first, last := g.column(b.min.x), g.column(b.max.x)
	for row := g.row(b.min.y); row <= g.row(b.max.y); row++ {
		for c := row*g.nx + first; c <= row*g.nx+last; c++ {
			for _, i := range g.cell(c) {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// emptyAround returns how many rings of cells around that of q, itself
// included, have no edges: at most limit.
func (g *grid) emptyAround(q point, limit int) int {
	col, row := g.column(q.x), g.row(q.y)
	for k := range limit {
		for r := max(0, row-k); r <= min(g.ny-1, row+k); r++ {
			step := 1
			if r != row-k && r != row+k {
				step = max(1, 2*k) // only the ring's two sides
			}
			for c := col - k; c <= col+k; c += step {
				if c >= 0 && c < g.nx && len(g.cell(r*g.nx+c)) > 0 {
					return k
				}
			}
		}
	}
	return limit
}

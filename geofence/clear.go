package geofence

import "math"

// What a tracked fix costs is mostly the search for the fences around it. So
// the tracker keeps, with a device's newest fix, a box that no boundary
// touches: as long as fixes stay in it, they are in the same fences. The
// shapes' clear methods give the box: half its height in degrees of latitude,
// at most a limit. Its width in degrees is its height divided by scale, or
// less; scale is the least cosine of latitude within the limit.

// squareIn is the half side of the square inside a circle of radius 1, a
// little less to be sure.
const squareIn = math.Sqrt2 / 2 * 0.99

func (c *circle) clear(p point, _, limit float64) float64 {
	d := distance(c.centre, p) - c.radiusM
	return min(limit, math.Abs(d)/metresPerDegree*squareIn)
}

func (c *corridor) clear(p point, scale, limit float64) float64 {
	for i := range c.blocks {
		s := &c.blocks[i]
		for _, dx := range frames {
			q := p.shift(dx)
			gap := clearOfBox(q, s.box, scale, limit)
			if gap >= limit {
				continue
			}
			d := 2*earthRadiusM*math.Asin(math.Sqrt(min(1, s.nearest(q)))) - c.radiusM
			half := math.Abs(d) / metresPerDegree * squareIn
			if d < 0 {
				// Inside: the boundary of the union of all stretches is at
				// least as far away.
				return min(limit, half)
			}
			limit = min(limit, max(gap, half))
		}
	}
	return limit
}

func (ps polygons) clear(p point, scale, limit float64) float64 {
	for _, g := range ps {
		for _, dx := range frames {
			limit = g.clear(p.shift(dx), scale, limit)
		}
	}
	return limit
}

func (p *polygon) clear(q point, scale, limit float64) float64 {
	gap := clearOfBox(q, p.box, scale, limit)
	if gap >= limit || gap > 0 && p.grid != nil {
		return gap
	}
	if p.grid != nil {
		return p.grid.clear(p, q, scale, limit)
	}
	least := math.Inf(1)
	for _, i := range p.edges() {
		least = min(least, squareFrom(q, p.pts[i], p.pts[i+1], scale))
	}
	return min(limit, max(gap, math.Sqrt(least)*squareIn))
}

// clear is the polygon's for a point in its box: by whole cells if those
// around the point have no edges.
func (g *grid) clear(p *polygon, q point, scale, limit float64) float64 {
	cell := min(g.width*scale, g.high)
	if k := g.emptyAround(q, 1+int(min(64, limit/cell))); k > 1 {
		return min(limit, float64(k-1)*cell*0.99)
	}
	limit = min(limit, cell)
	wide := limit / scale
	least := math.Inf(1)
	g.near(box{point{q.x - wide, q.y - limit}, point{q.x + wide, q.y + limit}}, func(i uint32) bool {
		least = min(least, squareFrom(q, p.pts[i], p.pts[i+1], scale))
		return true
	})
	return min(limit, math.Sqrt(least)*squareIn)
}

// clearOfBox is how far, in degrees of latitude, a box around q may reach
// until it touches b: 0 if q is in b, at most limit.
func clearOfBox(q point, b box, scale, limit float64) float64 {
	dx := max(b.min.x-q.x, q.x-b.max.x) * scale
	dy := max(b.min.y-q.y, q.y-b.max.y)
	return min(limit, max(0, dx*0.99, dy*0.99))
}

// squareFrom is the square of the distance of q from the edge, with
// longitudes scaled down.
func squareFrom(q, a, b point, scale float64) float64 {
	ax, ay := (a.x-q.x)*scale, a.y-q.y
	dx, dy := (b.x-a.x)*scale, b.y-a.y
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(1, max(0, -(ax*dx+ay*dy)/l))
	}
	x, y := ax+t*dx, ay+t*dy
	return x*x + y*y
}

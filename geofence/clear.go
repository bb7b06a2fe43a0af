package geofence

import "math"

// What a tracked fix costs is mostly the search for the fences around it. So
// the tracker keeps, with a device's newest fix, a box that no boundary
// touches: as long as fixes stay in it, they are in the same fences. The
// shapes' clear methods give the box.

// clearInsideCircle turns a distance in metres into half the height of the
// square inside the circle of that radius, a little less to be sure.
func clearInsideCircle(m float64) float64 {
	return m / metresPerDegree * (math.Sqrt2 / 2) * 0.99
}

func (c *circle) clear(p point, limit float64) float64 {
	return min(limit, clearInsideCircle(c.clearM(p)))
}

func (c *corridor) clear(p point, limit float64) float64 {
	for i := range c.blocks {
		s := &c.blocks[i]
		for _, dx := range frames {
			q := p.shift(dx)
			gap := clearOfBox(q, s.box, limit)
			if gap >= limit {
				continue
			}
			d := 2*earthRadiusM*math.Asin(math.Sqrt(min(1, s.nearest(q)))) - c.radiusM
			if d < 0 {
				// Inside: the union of the stretches has its boundary at
				// least as far away.
				return min(limit, clearInsideCircle(-d))
			}
			limit = min(limit, max(gap, clearInsideCircle(d)))
		}
	}
	return limit
}

func (ps polygons) clear(p point, limit float64) float64 {
	for _, g := range ps {
		for _, dx := range frames {
			limit = g.clear(p.shift(dx), limit)
		}
	}
	return limit
}

func (p *polygon) clear(q point, limit float64) float64 {
	if gap := clearOfBox(q, p.box, limit); gap > 0 {
		return gap
	}
	scale := math.Cos(min(90, math.Abs(q.y)+limit) * radians)
	if p.grid != nil {
		cell := min(p.grid.width*scale, p.grid.high)
		if k := p.grid.emptyAround(q, 1+int(min(64, limit/cell))); k > 1 {
			return min(limit, float64(k-1)*cell*0.99)
		}
		limit = min(limit, cell)
	}
	wide := limit / scale
	p.near(box{point{q.x - wide, q.y - limit}, point{q.x + wide, q.y + limit}}, func(i uint32) bool {
		limit = min(limit, clearOfEdge(q, p.pts[i], p.pts[i+1], scale))
		return limit > 0
	})
	return limit
}

// clearOfBox is how far, in degrees of latitude, a box around q may reach
// until it touches b: 0 if q is in b, at most limit.
func clearOfBox(q point, b box, limit float64) float64 {
	scale := math.Cos(min(90, math.Abs(q.y)+limit) * radians)
	dx := max(b.min.x-q.x, q.x-b.max.x) * scale
	dy := max(b.min.y-q.y, q.y-b.max.y)
	return min(limit, max(0, dx*0.99, dy*0.99))
}

// clearOfEdge is half the height of a box around q that the edge doesn't
// touch; scale is the least cosine of latitude in the box.
func clearOfEdge(q, a, b point, scale float64) float64 {
	ax, ay := (a.x-q.x)*scale, a.y-q.y
	dx, dy := (b.x-a.x)*scale, b.y-a.y
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(1, max(0, -(ax*dx+ay*dy)/l))
	}
	x, y := ax+t*dx, ay+t*dy
	return math.Sqrt(x*x+y*y) * (math.Sqrt2 / 2) * 0.99
}

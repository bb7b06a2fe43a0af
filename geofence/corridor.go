package geofence

// corridor is everything within a distance of some lines, which are straight
// in longitude and latitude. A line is in a frame in which it doesn't jump at
// the antimeridian.
type corridor struct {
	lines   [][]point
	radiusM float64
	hav     float64   // haversine of the radius
	blocks  []stretch // in order along the lines
	written [][]point // the lines as the file has them
}

// stretch is some consecutive points of a line, with the box that holds all
// that is within the radius of it.
type stretch struct {
	box box
	pts []point
}

const stretchEdges = 8

func newCorridor(lines [][]point, radiusM float64) *corridor {
	c := &corridor{lines: lines, radiusM: radiusM, hav: havOf(radiusM)}
	for _, line := range lines {
		for i := 0; i < len(line)-1; i += stretchEdges {
			pts := line[i:min(i+stretchEdges+1, len(line))]
			c.blocks = append(c.blocks, stretch{boxOf(pts).grow(radiusM), pts})
		}
	}
	return c
}

func (c *corridor) contains(p point) bool { return c.touches(p, 0, c.hav) }

func (c *corridor) within(p point, m float64) bool {
	return c.touches(p, m, havOf(c.radiusM+m))
}

// touches says whether a line comes as near to p as the haversine says; extra
// is how much farther that is than the radius, in metres.
func (c *corridor) touches(p point, extra, hav float64) bool {
	for i := range c.blocks {
		s := &c.blocks[i]
		reach := s.box
		if extra > 0 {
			reach = boxOf(s.pts).grow(c.radiusM + extra)
		}
		for _, dx := range frames {
			if q := p.shift(dx); reach.contains(q) && s.nearest(q) <= hav {
				return true
			}
		}
	}
	return false
}

// nearest is the haversine of the stretch's distance from p.
func (s *stretch) nearest(p point) float64 {
	least := 2.0
	for i := 1; i < len(s.pts); i++ {
		_, h := nearest(s.pts[i-1], s.pts[i], p)
		least = min(least, h)
	}
	return least
}

func (c *corridor) boxes(dst []box) []box {
	for i := range c.blocks {
		dst = append(dst, c.blocks[i].box)
	}
	return dst
}

func (c *corridor) crossing(a, b point) (from, to float64, ok bool) {
	segment := boxOf([]point{a, b})
	from, to = 2, -1
	for i := range c.blocks {
		s := &c.blocks[i]
		for _, dx := range frames {
			if !s.box.intersects(segment.shift(dx)) {
				continue
			}
			for j := 1; j < len(s.pts); j++ {
				f, t, met := c.crossEdge(a.shift(dx), b.shift(dx), s.pts[j-1], s.pts[j])
				if met {
					from, to = min(from, f), max(to, t)
				}
			}
		}
	}
	return from, to, to >= 0
}

// crossEdge is crossing for one edge p to q of the lines. The distance from
// the edge along the segment has one minimum.
func (c *corridor) crossEdge(a, b, p, q point) (from, to float64, ok bool) {
	hav := func(t float64) float64 {
		_, h := nearest(p, q, lerp(a, b, t))
		return h
	}
	t, _, met := meet(a, b, p, q)
	if !met {
		t = minimum(hav)
	}
	if hav(t) > c.hav {
		return 0, 0, false
	}
	inside := func(s float64) bool { return hav(s) <= c.hav }
	return bisect(t, 0, inside), bisect(t, 1, inside), true
}

// minimum finds the smallest value over 0..1 of a function that falls, then
// rises, by golden sections.
func minimum(f func(float64) float64) float64 {
	const phi = 0.618033988749894848
	lo, hi := 0.0, 1.0
	x, y := hi-phi*(hi-lo), lo+phi*(hi-lo)
	fx, fy := f(x), f(y)
	for range 50 {
		if fx <= fy {
			hi, y, fy = y, x, fx
			x = hi - phi*(hi-lo)
			fx = f(x)
		} else {
			lo, x, fx = x, y, fy
			y = lo + phi*(hi-lo)
			fy = f(y)
		}
	}
	best := (lo + hi) / 2
	for _, end := range [...]float64{0, 1} {
		if f(end) < f(best) {
			best = end
		}
	}
	return best
}

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
	if found := p.selfCrossing(); found != nil {
		return nil, &placeError{p.offset(found.edge, places), found.msg()}
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

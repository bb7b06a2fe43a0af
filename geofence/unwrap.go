package geofence

import "math"

// turns gives each point's number of turns around the earth, so that no step
// of x + 360*turns is longer than half a turn. A step of exactly 360 degrees,
// from -180 to 180, is either the same meridian or all of the parallel; hop
// chooses. It returns the turns after the last point.
func turns(pts []point, hop bool, dst []int) ([]int, int) {
	k := 0
	for i := range pts {
		if i > 0 {
			switch dx := pts[i].x - pts[i-1].x; {
			case math.Abs(dx) == 360 && !hop:
			case dx > 180:
				k--
			case dx < -180:
				k++
			}
		}
		dst = append(dst, k)
	}
	return dst, k
}

// jumps says whether a line leaves the ordinary frame.
func jumps(pts []point) bool {
	for i := 1; i < len(pts); i++ {
		if math.Abs(pts[i].x-pts[i-1].x) > 180 {
			return true
		}
	}
	return false
}

// frame puts the points into one frame, with the least x in -180..180.
func frame(pts []point, ks []int) []point {
	least := math.Inf(1)
	for i, p := range pts {
		least = min(least, p.x+360*float64(ks[i]))
	}
	shift := 0
	for least < -180 {
		least, shift = least+360, shift+1
	}
	for least >= 180 {
		least, shift = least-360, shift-1
	}
	out := make([]point, len(pts))
	for i, p := range pts {
		out[i] = p.shift(360 * float64(ks[i]+shift)) // one rounding
	}
	return out
}

// unwrapLine puts a line into one frame.
func unwrapLine(pts []point) []point {
	ks, _ := turns(pts, true, make([]int, 0, len(pts)))
	return frame(pts, ks)
}

// unwrapRing puts a closed ring into one frame. A ring that goes around the
// earth is closed over the pole on its side of the equator. msg says why it
// can't be done. The result may be pts itself.
func unwrapRing(pts []point) (out []point, msg string) {
	if !jumps(pts) {
		return pts, ""
	}
	ks, around := turns(pts, true, nil)
	if around == 0 {
		if out := frame(pts, ks); signedArea(out) != 0 {
			return out, ""
		}
	}
	if ks, k := turns(pts, false, nil); k == 0 {
		if out := frame(pts, ks); signedArea(out) != 0 {
			return out, ""
		}
	}
	switch {
	case around == 0:
		return nil, "the ring has no area"
	case around != 1 && around != -1:
		return nil, "the ring goes around the earth more than once"
	}
	pole := poleOf(pts)
	if pole == 0 {
		return nil, "the ring goes around the earth near the equator, and which pole it holds is unclear: cut it at 180 degrees"
	}
	capped := append([]point(nil), pts...)
	first := pts[0]
	capped = append(capped, point{first.x, pole}, point{first.x, pole}, first)
	ks = append(ks, around, 0, 0)
	return frame(capped, ks), ""
}

// poleOf is the latitude of the pole that a ring around the earth holds; 0 if
// the ring is on both sides of the equator.
func poleOf(pts []point) float64 {
	lo, hi := pts[0].y, pts[0].y
	for _, p := range pts {
		lo, hi = min(lo, p.y), max(hi, p.y)
	}
	switch {
	case lo > 0:
		return 90
	case hi < 0:
		return -90
	}
	return 0
}

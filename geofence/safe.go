package geofence

import "math"

// Bounds of a safe box's half height, in degrees of latitude.
const (
	safeLeast = 0.001 // about 110 m
	safeMost  = 0.3   // about 33 km
	// safeSteps is how many steps like the last one a box should reach.
	safeSteps = 16
	// safeMaxFences is how many fences around a fix make a box not worth it.
	safeMaxFences = 12
	// safePays is how many fixes a box has to serve to have been worth it.
	safePays = 16
	// safeMaxIdle bounds the row of boxes that weren't, and so, as a power of
	// two, the searches without one.
	safeMaxIdle = 7
)

// leaveSafe gives up the safe box that the newest fix has left, and learns how
// well it paid off.
func (t *Tracker) leaveSafe(d *device) {
	if d.epoch == t.epoch {
		if d.served < safePays {
			d.postpone()
		} else {
			d.idle = 0
		}
	}
	d.epoch = 0
}

// postpone does without safe boxes for some searches, the more the longer none
// paid off.
func (d *device) postpone() {
	d.idle = min(d.idle+1, safeMaxIdle)
	d.wait = 1<<d.idle - 1
}

// makeSafe keeps the surroundings of the newest fix that no boundary touches,
// if it is likely to pay off. It takes that all the device's affairs are
// plain: in each fence around the fix, and in no other, so that only a
// boundary can change something.
func (t *Tracker) makeSafe(d *device, before leg, first bool) {
	if t.searches || !t.plain(d) {
		return
	}
	if d.wait > 0 {
		d.wait--
		return
	}
	p := d.point()
	step := safeLeast
	if !first {
		step = max(math.Abs(p.y-before.from.y), math.Abs(p.x-before.from.x)*math.Cos(p.y*radians))
	}
	limit := min(safeMost, max(safeLeast, step*safeSteps))
	if math.Abs(p.y)+limit > 89 {
		return
	}
	scale := math.Cos((math.Abs(p.y) + limit) * radians)
	wide := limit / scale
	half, n := limit, 0
	t.snap.touching(box{point{p.x - wide, p.y - limit}, point{p.x + wide, p.y + limit}}, func(f *Fence) bool {
		if n++; n <= safeMaxFences {
			half = f.shape.clear(p, scale, half)
		}
		return half > 0 && n <= safeMaxFences
	})
	if half <= 4*step && !first || half <= 0 || n > safeMaxFences {
		d.postpone()
		return
	}
	wide = half / math.Cos(max(0, math.Abs(p.y)-half)*radians)
	d.safe = box{point{p.x - wide, p.y - half}, point{p.x + wide, p.y + half}}
	d.epoch, d.served = t.epoch, 0
}

// plain says whether the device is in each fence around its newest fix and in
// no other, and nothing but its place can change that.
func (t *Tracker) plain(d *device) bool {
	if len(d.stays) != len(t.hits) || len(t.stale) > 0 || t.cfg.Inside && len(d.stays) > 0 ||
		d.more != nil && len(d.more.entering) > 0 {
		return false
	}
	for i := range d.stays {
		st := &d.stays[i]
		if !st.in || st.fence.banded() || !t.isHit(st.fence) {
			return false
		}
	}
	return true
}

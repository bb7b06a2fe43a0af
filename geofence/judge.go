package geofence

import (
	"cmp"
	"math"
	"slices"
)

// verdict is what a fix says about a device and a fence.
type verdict uint8

const (
	outside verdict = iota
	within
	unjudged // the fix can't tell
	inactive // whatever the place
)

// verdict says what the fix says about f; near is whether it is inside by
// geometry.
func (t *Tracker) verdict(f *Fence, near bool, fix *Fix) verdict {
	switch {
	case !f.schedule().active(fix.TS):
		return inactive
	case !t.cfg.takes(f, fix):
		return unjudged
	case !near:
		return outside
	case !f.banded():
		return within
	case fix.Has&HasAlt == 0:
		return unjudged
	case fix.Alt < f.rules.minAlt || fix.Alt > f.rules.maxAlt:
		return outside
	}
	return within
}

// transition begins one that happened to d at a device time.
func transition(kind Kind, d *device, f *Fence, at int64) Transition {
	return Transition{Kind: kind, Device: d.id, Fence: f, At: at, Since: at, Fix: d.fix()}
}

// leave ends the stays that the newest fix ends. t.left are their fences.
func (t *Tracker) leave(d *device, fix *Fix, dst []Transition) []Transition {
	t.left = t.left[:0]
	for i := 0; i < len(d.stays); {
		st := &d.stays[i]
		v := t.verdict(st.fence, t.near(st.fence, d.point()), fix)
		st.in = v == within
		switch v {
		case within:
			st.outCount = 0
		case outside:
			if st.outCount == 0 {
				st.outSince = fix.TS
			}
			st.outCount++
		}
		if v == inactive || v == outside && int(st.outCount) >= t.cfg.confirm(st.fence) {
			out := exit(d, st, fix.TS)
			if v == inactive {
				out.Reason = ReasonInactive
			} else {
				out.Since = st.outSince
			}
			dst = append(dst, out)
			t.left = append(t.left, st.fence)
			t.endStay(d, i)
			continue
		}
		i++
	}
	return dst
}

// near says whether p, the newest fix's place, counts as inside the fence of
// a stay: hysteresis included.
func (t *Tracker) near(f *Fence, p point) bool {
	if t.isHit(f) {
		return true
	}
	if len(t.stale) > 0 && f.Contains(p.y, p.x) { // perhaps not in the snapshot
		return true
	}
	m := t.cfg.exitBuffer(f)
	return m > 0 && f.shape.within(p, m)
}

func (t *Tracker) isHit(f *Fence) bool {
	if len(t.hits) <= 8 {
		return slices.Contains(t.hits, f)
	}
	i, found := search(t.hits, f.ID)
	return found && t.hits[i] == f
}

// exit is the transition that ends a stay at a device time.
func exit(d *device, st *stay, at int64) Transition {
	out := transition(Exit, d, st.fence, at)
	out.EnteredAt, out.ExitedAt = st.enteredAt, at
	return out
}

func (t *Tracker) endStay(d *device, i int) {
	t.unlink(d, d.stays[i].fence)
	d.stays = slices.Delete(d.stays, i, i+1)
	d.epoch = 0 // perhaps still inside by place alone
}

// enter begins the stays that the newest fix begins.
func (t *Tracker) enter(d *device, fix *Fix, first bool, dst []Transition) []Transition {
	for _, f := range t.hits {
		at, staying := d.stay(f.ID)
		if staying {
			continue
		}
		switch t.verdict(f, true, fix) {
		case within:
			in := transition(Enter, d, f, fix.TS)
			in.Initial, in.EnteredAt = first, fix.TS
			if t.cfg.confirm(f) > 1 && !t.confirmEnter(d, f, fix, first, &in) {
				continue
			}
			t.beginStay(d, at, f, fix.TS)
			if !in.Initial || !t.cfg.SilentInitial {
				dst = append(dst, in)
			}
		case unjudged:
			if i, ok := d.entering(f.ID); ok {
				d.more.entering[i].at = fix.TS // neither for nor against it
			}
		}
	}
	if d.more != nil && len(d.more.entering) > 0 {
		d.more.entering = slices.DeleteFunc(d.more.entering, func(e entering) bool {
			return e.at != fix.TS && t.cfg.takes(e.fence, fix)
		})
	}
	return dst
}

// confirmEnter counts the fix and says whether it was the last that is
// needed.
func (t *Tracker) confirmEnter(d *device, f *Fence, fix *Fix, first bool, in *Transition) bool {
	i, ok := d.entering(f.ID)
	if !ok {
		m := d.extra()
		m.entering = slices.Insert(m.entering, i, entering{fence: f, since: fix.TS, initial: first})
	}
	e := &d.more.entering[i]
	if e.fence != f { // another version: what was counted doesn't hold
		*e = entering{fence: f, since: fix.TS}
	}
	e.at = fix.TS
	e.count++
	if e.count < t.cfg.confirm(f) {
		return false
	}
	in.Since, in.Initial = e.since, e.initial
	d.more.entering = slices.Delete(d.more.entering, i, i+1)
	return true
}

func (t *Tracker) beginStay(d *device, i int, f *Fence, at int64) {
	st := stay{fence: f, enteredAt: at, in: true}
	st.due = t.dueOf(&st, d.ts)
	d.stays = slices.Insert(d.stays, i, st)
	t.link(d, f)
	d.epoch = 0
}

// cross tells the fences that the device passed through since the last fix.
func (t *Tracker) cross(d *device, before leg, fix *Fix, dst []Transition) []Transition {
	gap := fix.TS - before.ts
	a, b := before.from, d.point()
	if gap > t.cfg.CrossMaxGap.Milliseconds() || a == b {
		return dst
	}
	if b.x-a.x > 180 { // the short way across the antimeridian
		b.x -= 360
	} else if b.x-a.x < -180 {
		b.x += 360
	}
	from := len(dst)
	t.snap.touching(box{
		point{min(a.x, b.x), min(a.y, b.y)},
		point{max(a.x, b.x), max(a.y, b.y)},
	}, func(f *Fence) bool {
		if tr, ok := t.crossOf(d, f, a, b, before, fix); ok {
			dst = append(dst, tr)
		}
		return true
	})
	if found := dst[from:]; len(found) > 1 {
		slices.SortFunc(found, func(a, b Transition) int { return cmp.Compare(a.Fence.ID, b.Fence.ID) })
		found = slices.CompactFunc(found, func(a, b Transition) bool { return a.Fence == b.Fence })
		dst = dst[:from+len(found)]
	}
	return dst
}

func (t *Tracker) crossOf(d *device, f *Fence, a, b point, before leg, fix *Fix) (Transition, bool) {
	if t.isHit(f) || slices.Contains(t.left, f) || t.cfg.confirm(f) > 1 || f.Contains(before.from.y, before.from.x) {
		return Transition{}, false
	}
	if _, staying := d.stay(f.ID); staying {
		return Transition{}, false
	}
	s, e, ok := f.shape.crossing(a, b)
	if !ok || !t.judgesCross(f, (s+e)/2, before, fix) {
		return Transition{}, false
	}
	gap := float64(fix.TS - before.ts)
	in := before.ts + int64(math.Round(s*gap))
	out := before.ts + int64(math.Round(e*gap))
	if !f.schedule().active(in) {
		return Transition{}, false
	}
	tr := transition(Cross, d, f, out)
	tr.EnteredAt, tr.ExitedAt = in, out
	return tr, true
}

// judgesCross says whether the fixes at both ends of a leg are good enough,
// and whether the leg's altitude half-way through the fence, at s, is in the
// fence's band.
func (t *Tracker) judgesCross(f *Fence, s float64, before leg, fix *Fix) bool {
	if !t.cfg.takes(f, fix) || !t.cfg.takes(f, &Fix{Has: before.has, Accuracy: before.acc}) {
		return false
	}
	if !f.banded() {
		return true
	}
	if before.has&fix.Has&HasAlt == 0 {
		return false
	}
	alt := before.alt + (fix.Alt-before.alt)*s
	return alt >= f.rules.minAlt && alt <= f.rules.maxAlt
}

// tellInside tells the fences that the newest fix is inside.
func (t *Tracker) tellInside(d *device, dst []Transition) []Transition {
	for i := range d.stays {
		st := &d.stays[i]
		if !st.in || st.insideAt != 0 && d.ts-st.insideAt < t.cfg.InsideEvery.Milliseconds() {
			continue
		}
		st.insideAt = d.ts
		tr := transition(Inside, d, st.fence, d.ts)
		tr.EnteredAt = st.enteredAt
		dst = append(dst, tr)
	}
	return dst
}

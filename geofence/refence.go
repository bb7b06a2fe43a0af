package geofence

import (
	"cmp"
	"slices"
)

// Refence moves the tracker to the index's newest snapshot. Devices that are
// inside a changed or deleted fence are judged again with their newest fix, at
// once; others at their next fix. An exit that a change makes carries the
// version of the fence that the stay was recorded with. All are at the newest
// fix's TS, but an exit is never before a dwell that was told, nor an enter
// before such an exit. A fence that asks for confirmation is entered by later
// fixes only. Transitions are in order of devices, then exits before enters.
func (t *Tracker) Refence(_ int64, dst []Transition) []Transition {
	t.start = len(dst)
	changed := t.advanceSnapshot()
	if len(changed) == 0 {
		return dst
	}
	seen := map[*device]struct{}{}
	for _, id := range changed {
		for d := range t.inside[id] {
			seen[d] = struct{}{}
		}
	}
	devices := make([]*device, 0, len(seen))
	for d := range seen {
		devices = append(devices, d)
	}
	slices.SortFunc(devices, func(a, b *device) int { return cmp.Compare(a.id, b.id) })
	for _, d := range devices {
		dst = t.rejudge(d, changed, dst)
	}
	return dst
}

// advanceSnapshot takes the newest snapshot and returns the ids of the fences
// that differ from what the tracker has judged with, sorted.
func (t *Tracker) advanceSnapshot() []string {
	newest := t.ix.Snapshot()
	if newest == t.snap && len(t.stale) == 0 {
		return nil
	}
	var ids []string
	for c := t.snap.change; c != newest.change; {
		c = c.next.Load()
		ids = append(ids, c.ids...)
	}
	for id := range t.stale {
		ids = append(ids, id)
	}
	clear(t.stale)
	t.snap = newest
	t.epoch++
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rejudge judges the device's newest fix against the changed fences.
func (t *Tracker) rejudge(d *device, changed []string, dst []Transition) []Transition {
	fix := d.fix()
	for _, id := range changed {
		if i, staying := d.stay(id); staying {
			dst = t.rejudgeStay(d, i, &fix, dst)
		}
	}
	for _, id := range changed {
		f := t.snap.Fence(id)
		i, staying := d.stay(id)
		if f == nil || staying || t.cfg.confirm(f) > 1 ||
			t.verdict(f, f.Contains(d.lat, d.lon), &fix) != within || wasIn(dst[t.start:], d.id, id) {
			continue
		}
		at := d.ts
		if d.more != nil {
			at = max(at, d.more.left) // perhaps of the same fence
		}
		t.beginStay(d, i, f, at)
		in := transition(Enter, d, f, at)
		in.EnteredAt, in.Reason, in.Revision = at, ReasonFenceChanged, f.Revision
		dst = append(dst, in)
	}
	d.epoch = 0
	t.arm(d)
	return dst
}

// wasIn says whether the device has just been told to have left the fence.
func wasIn(trs []Transition, device, fence string) bool {
	return slices.ContainsFunc(trs, func(tr Transition) bool {
		return tr.Kind == Exit && tr.Device == device && tr.Fence.ID == fence
	})
}

// rejudgeStay ends the stay, or carries it on in the fence's new version.
func (t *Tracker) rejudgeStay(d *device, i int, fix *Fix, dst []Transition) []Transition {
	st := &d.stays[i]
	f := t.snap.Fence(st.fence.ID)
	if f == st.fence {
		return dst
	}
	at := max(d.ts, st.enteredAt+st.dwelt) // not before a dwell that was told
	out := exit(d, st, at)
	if f == nil {
		out.Reason, out.Revision = ReasonFenceDeleted, st.fence.Revision
		d.extra().left = at
		t.endStay(d, i)
		return append(dst, out)
	}
	near := f.Contains(d.lat, d.lon)
	if m := t.cfg.exitBuffer(f); !near && m > 0 {
		near = f.shape.within(d.point(), m)
	}
	if v := t.verdict(f, near, fix); v == outside || v == inactive {
		out.Reason, out.Revision = ReasonFenceChanged, f.Revision
		d.extra().left = at
		t.endStay(d, i)
		return append(dst, out)
	}
	t.unlink(d, st.fence)
	t.link(d, f)
	st.fence = f
	st.outCount, st.outSince = 0, 0
	st.due = t.dueOf(st, d.ts)
	return dst
}

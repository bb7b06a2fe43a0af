package geofence

import (
	"slices"
	"time"
)

// A device's timers are in device time: the TS of its newest fix plus the
// time that has passed since that fix was stored. So replayed history and
// skewed device clocks work, and a parked device that sends no more still
// dwells. The heap holds the devices by the clock time of their first timer.

// dueOf is the device time of the stay's next timer: its next dwell, or the
// end of the fence's active hours. ts is a time at which the fence is active.
func (t *Tracker) dueOf(st *stay, ts int64) int64 {
	return min(t.nextDwell(st), st.fence.schedule().until(ts))
}

// nextDwell is when the stay's next dwell is due.
func (t *Tracker) nextDwell(st *stay) int64 {
	for _, d := range t.cfg.dwell(st.fence) {
		if ms := d.Milliseconds(); ms > st.dwelt {
			return st.enteredAt + ms
		}
	}
	return forever
}

// due is the device time of the device's first timer.
func (t *Tracker) due(d *device) int64 {
	first := forever
	for i := range d.stays {
		first = min(first, d.stays[i].due)
	}
	return min(first, t.silentDue(d), t.forgetDue(d))
}

func (t *Tracker) silentDue(d *device) int64 {
	if t.cfg.SilentAfter == 0 || d.state&silent != 0 {
		return forever
	}
	return d.ts + t.cfg.SilentAfter.Milliseconds()
}

func (t *Tracker) forgetDue(d *device) int64 {
	if t.cfg.ForgetAfter == 0 {
		return forever
	}
	return d.ts + t.cfg.ForgetAfter.Milliseconds()
}

// forgets says whether the device will have been forgotten at a device time.
func (t *Tracker) forgets(d *device, ts int64) bool { return t.forgetDue(d) <= ts }

// fire fires the device's timers that are due up to a device time, in order:
// each at its own time; at one time exits, dwells, silent, each by fence id.
// forgotten says that the last of them evicted the device.
func (t *Tracker) fire(d *device, upTo int64, dst []Transition) (_ []Transition, forgotten bool) {
	for {
		at := t.due(d)
		if at > upTo {
			return dst, false
		}
		if i := t.firstStay(d, at); i >= 0 {
			dst = t.fireStay(d, i, at, dst)
			continue
		}
		if t.silentDue(d) == at {
			d.state |= silent
			tr := transition(Silent, d, nil, at)
			dst = append(dst, tr)
			continue
		}
		t.evict(d)
		t.gone = append(t.gone, d.id)
		return dst, true
	}
}

// firstStay is the stay whose timer fires first of those due at a time: -1 if
// there is none.
func (t *Tracker) firstStay(d *device, at int64) int {
	found := -1
	for i := range d.stays {
		if d.stays[i].due != at {
			continue
		}
		if !d.stays[i].fence.schedule().active(at) {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}

func (t *Tracker) fireStay(d *device, i int, at int64, dst []Transition) []Transition {
	st := &d.stays[i]
	if !st.fence.schedule().active(at) {
		out := exit(d, st, at)
		out.Reason = ReasonInactive
		d.extra().left = at
		t.endStay(d, i)
		return append(dst, out)
	}
	tr := transition(Dwell, d, st.fence, at)
	tr.EnteredAt = st.enteredAt
	st.dwelt = at - st.enteredAt
	tr.Dwell = time.Duration(st.dwelt) * time.Millisecond
	st.due = t.dueOf(st, at)
	return append(dst, tr)
}

// arm puts the device into the heap, or where it belongs there, or takes it
// out if it has no timer.
func (t *Tracker) arm(d *device) {
	wake := t.wakeOf(d)
	switch {
	case wake == forever:
		t.disarm(d)
	case d.heap == 0:
		d.wake = wake
		t.timers = append(t.timers, d)
		d.heap = int32(len(t.timers))
		t.rise(len(t.timers) - 1)
	case wake != d.wake:
		d.wake = wake
		t.settle(int(d.heap) - 1)
	}
}

// wakeOf is the clock time at which the device has something to do.
func (t *Tracker) wakeOf(d *device) int64 { return min(t.timerWake(d), t.bufferWake(d)) }

// timerWake is the clock time of the device's first timer. With a reorder
// buffer it waits as long as a fix may, so that none comes before its time.
func (t *Tracker) timerWake(d *device) int64 {
	if len(d.stays) == 0 && t.cfg.SilentAfter == 0 && t.cfg.ForgetAfter == 0 || !d.judged() {
		return forever
	}
	at := t.due(d)
	if at == forever {
		return forever
	}
	return d.stored + at - d.ts + t.cfg.Reorder.Milliseconds()
}

func (t *Tracker) disarm(d *device) {
	if d.heap == 0 {
		return
	}
	i, last := int(d.heap)-1, len(t.timers)-1
	t.swap(i, last)
	t.timers[last] = nil
	t.timers = t.timers[:last]
	d.heap = 0
	if i < last {
		t.settle(i)
	}
}

func (t *Tracker) settle(i int) {
	if !t.sink(i) {
		t.rise(i)
	}
}

func (t *Tracker) before(i, j int) bool {
	a, b := t.timers[i], t.timers[j]
	if a.wake != b.wake {
		return a.wake < b.wake
	}
	return a.id < b.id
}

func (t *Tracker) swap(i, j int) {
	t.timers[i], t.timers[j] = t.timers[j], t.timers[i]
	t.timers[i].heap, t.timers[j].heap = int32(i)+1, int32(j)+1
}

func (t *Tracker) rise(i int) {
	for i > 0 && t.before(i, (i-1)/2) {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (t *Tracker) sink(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(t.timers) {
			return moved
		}
		if child+1 < len(t.timers) && t.before(child+1, child) {
			child++
		}
		if !t.before(child, i) {
			return moved
		}
		t.swap(i, child)
		i, moved = child, true
	}
}

// Advance fires all that is due when the clock reads now, unix milliseconds:
// timers of devices that don't report, and fixes that have waited long enough
// for older ones. The transitions are in order of their clock times, then by
// device.
func (t *Tracker) Advance(now int64, dst []Transition) []Transition {
	t.start = len(dst)
	for len(t.timers) > 0 && t.timers[0].wake <= now {
		d := t.timers[0]
		if t.bufferWake(d) <= t.timerWake(d) {
			dst = t.release(d, d.wake, dst)
			continue
		}
		var forgotten bool
		if dst, forgotten = t.fire(d, t.due(d), dst); forgotten {
			if d = d.successor(); d.more == nil {
				continue
			}
			t.devices[d.id] = d
		}
		t.arm(d)
	}
	return dst
}

// Next returns the clock time at which Advance will next have something to
// do, if ever.
func (t *Tracker) Next() (now int64, ok bool) {
	if len(t.timers) == 0 {
		return 0, false
	}
	return t.timers[0].wake, true
}

// Pending says whether any timer waits, or any fix for older ones.
func (t *Tracker) Pending() bool { return len(t.timers) > 0 }

// Forgotten appends the devices that Config.ForgetAfter has evicted since the
// last call, sorted. One that has reported again since may be among them.
func (t *Tracker) Forgotten(dst []string) []string {
	slices.Sort(t.gone)
	dst = append(dst, t.gone...)
	clear(t.gone)
	t.gone = t.gone[:0]
	return dst
}

package geofence

import (
	"cmp"
	"slices"
)

// maxBuffered is how many fixes of one device wait at most; beyond it the
// oldest is judged early.
const maxBuffered = 256

// buffered are the fixes that wait.
func (d *device) buffered() []Fix {
	if d.more == nil {
		return nil
	}
	return d.more.buffer
}

// buffer takes a fix into the device's reorder buffer and judges those that
// have waited long enough: those older than the newest by Reorder.
func (t *Tracker) buffer(d *device, fix *Fix, dst []Transition) ([]Transition, Result) {
	switch {
	case d.judged() && fix.TS < d.ts:
		return dst, Late
	case d.judged() && fix.TS == d.ts:
		return dst, Duplicate
	case fix.Has&HasAccuracy != 0 && t.cfg.MaxAccuracyM > 0 &&
		fix.Accuracy > max(t.cfg.MaxAccuracyM, t.snap.coarsest):
		return dst, Inaccurate
	}
	i, found := slices.BinarySearchFunc(d.buffered(), fix.TS, func(f Fix, ts int64) int { return cmp.Compare(f.TS, ts) })
	if found {
		return dst, Duplicate
	}
	own := *fix
	own.Device = d.id
	own.Props = slices.Clone(fix.Props)
	m := d.extra()
	m.buffer = slices.Insert(m.buffer, i, own)
	d.seq = max(d.seq, fix.Seq)
	t.devices[d.id] = d

	newest := m.buffer[len(m.buffer)-1].TS
	upTo := newest - t.cfg.Reorder.Milliseconds()
	if len(m.buffer) > maxBuffered {
		upTo = max(upTo, m.buffer[0].TS)
	}
	dst = t.judgeBuffered(d, upTo, dst)
	if fix.TS <= upTo {
		return dst, Accepted
	}
	return dst, Buffered
}

// judgeBuffered judges the device's waiting fixes up to a device time.
func (t *Tracker) judgeBuffered(d *device, upTo int64, dst []Transition) []Transition {
	for d.more != nil && len(d.more.buffer) > 0 && d.more.buffer[0].TS <= upTo {
		fix := d.more.buffer[0]
		d.more.buffer = slices.Delete(d.more.buffer, 0, 1)
		dst, _ = t.judge(d, &fix, dst)
		d = t.devices[d.id] // another one if the old was forgotten
	}
	t.arm(d)
	return dst
}

// bufferWake is the clock time at which a waiting fix has waited long enough.
func (t *Tracker) bufferWake(d *device) int64 {
	wake := forever
	for _, fix := range d.buffered() {
		wake = min(wake, fix.Stored+t.cfg.Reorder.Milliseconds())
	}
	return wake
}

// release judges the fixes whose time to wait ends at a clock time, and those
// older than them.
func (t *Tracker) release(d *device, wake int64, dst []Transition) []Transition {
	var upTo int64
	for _, fix := range d.buffered() {
		if fix.Stored+t.cfg.Reorder.Milliseconds() <= wake {
			upTo = fix.TS // they are in order of TS
		}
	}
	return t.judgeBuffered(d, upTo, dst)
}

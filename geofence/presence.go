package geofence

import (
	"encoding/binary"
	"math"
)

// The encoding of a presence is a version byte, then in turn, with integers as
// varints and strings after their length:
//
//	flags, fields of the fix, latitude and longitude, ts, stored,
//	position, the fix's own seq, its fields that are set, props,
//	stays, entering counters, and, if flagged, the speed gate's fix and the
//	latest exit without a fix.
const presenceVersion = 1

const (
	flagSilent = 1 << iota
	flagGate
	flagLeft
)

// AppendPresence appends the device's encoded presence: all that a tracker
// needs to go on as if it had never stopped, given again the fixes after
// [Tracker.Seq]. False: there is nothing to save, the device has no judged
// fix.
func (t *Tracker) AppendPresence(dst []byte, device string) ([]byte, bool) {
	d := t.devices[device]
	if d == nil || !d.judged() {
		return dst, false
	}
	m := d.more
	if m == nil {
		m = &more{}
	}
	flags := byte(0)
	if d.state&silent != 0 {
		flags |= flagSilent
	}
	if m.gate.count > 0 {
		flags |= flagGate
	}
	if m.left > d.ts { // else it matters no more
		flags |= flagLeft
	}
	dst = append(dst, presenceVersion, flags, byte(d.has))
	dst = appendFloat(dst, d.lat)
	dst = appendFloat(dst, d.lon)
	dst = binary.AppendVarint(dst, d.ts)
	dst = binary.AppendVarint(dst, d.stored)
	dst = binary.AppendUvarint(dst, d.position())
	dst = binary.AppendUvarint(dst, m.seq)
	for _, field := range d.fields() {
		if d.has&field.bit != 0 {
			dst = appendFloat(dst, *field.value)
		}
	}
	dst = appendBytes(dst, m.props)
	dst = binary.AppendUvarint(dst, uint64(len(d.stays)))
	for i := range d.stays {
		dst = d.stays[i].append(dst)
	}
	dst = t.appendEntering(dst, m.entering)
	if flags&flagGate != 0 {
		dst = appendFloat(dst, m.gate.lat)
		dst = appendFloat(dst, m.gate.lon)
		dst = binary.AppendVarint(dst, m.gate.ts)
		dst = binary.AppendUvarint(dst, uint64(m.gate.count))
	}
	if flags&flagLeft != 0 {
		dst = binary.AppendVarint(dst, m.left)
	}
	return dst, true
}

// optional is an optional field of a device's newest fix.
type optional struct {
	bit   Fields
	value *float64
}

func (d *device) fields() [4]optional {
	return [...]optional{
		{HasAccuracy, &d.accuracy}, {HasSpeed, &d.speed}, {HasHeading, &d.heading}, {HasAlt, &d.alt},
	}
}

func (st *stay) append(dst []byte) []byte {
	dst = appendBytes(dst, []byte(st.fence.ID))
	dst = binary.AppendUvarint(dst, st.fence.Revision)
	dst = binary.AppendVarint(dst, st.enteredAt)
	dst = binary.AppendVarint(dst, st.dwelt)
	dst = binary.AppendVarint(dst, st.insideAt)
	dst = binary.AppendVarint(dst, int64(st.outCount))
	if st.outCount > 0 {
		dst = binary.AppendVarint(dst, st.outSince)
	}
	return dst
}

// appendEntering leaves out the counters whose fence has changed: they don't
// hold any more.
func (t *Tracker) appendEntering(dst []byte, es []entering) []byte {
	n := 0
	for i := range es {
		if t.snap.Fence(es[i].fence.ID) == es[i].fence {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := range es {
		if t.snap.Fence(es[i].fence.ID) == es[i].fence {
			dst = es[i].append(dst)
		}
	}
	return dst
}

func (e *entering) append(dst []byte) []byte {
	dst = appendBytes(dst, []byte(e.fence.ID))
	dst = binary.AppendUvarint(dst, e.fence.Revision)
	dst = binary.AppendVarint(dst, e.since)
	dst = binary.AppendVarint(dst, int64(e.count))
	if e.initial {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendFloat(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

package geofence

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Restore loads an encoded presence, in place of what is known of the device.
// fence gives the recorded version of a fence by id and revision, so that an
// exit carries its properties; where it returns nil, or is nil itself, a fence
// with nothing but that id stands in. A stay in a fence that has another revision now, or is gone, is judged
// by the next [Tracker.Refence].
func (t *Tracker) Restore(device string, enc []byte, fence func(id string, rev uint64) *Fence) error {
	r := reader{data: enc}
	if v := r.byte(); v != presenceVersion && r.err == nil {
		return fmt.Errorf("restoring the presence of %q: its format %d is not known", device, v)
	}
	u := &unresolved{}
	u.id = strings.Clone(device)
	r.device(u)
	if r.err == nil && len(r.data) > 0 {
		r.err = errors.New("bytes are left over")
	}
	if r.err != nil {
		return fmt.Errorf("restoring the presence of %q: %w", device, r.err)
	}
	if old := t.devices[device]; old != nil {
		t.evict(old)
	}
	t.adopt(u, fence)
	return nil
}

// unresolved is a decoded device whose fences are still to be found.
type unresolved struct {
	device
	stays, entering []version
}

// version names a version of a fence.
type version struct {
	id  string
	rev uint64
}

// adopt finds the device's fences and adds it.
func (t *Tracker) adopt(u *unresolved, fence func(id string, rev uint64) *Fence) {
	d := new(u.device) // without what was unresolved
	t.devices[d.id] = d
	for i, v := range u.stays {
		st := &d.stays[i]
		st.fence = t.snap.Fence(v.id)
		if st.fence == nil || st.fence.Revision != v.rev {
			t.stale[v.id] = struct{}{}
			st.fence = nil
			if fence != nil {
				st.fence = fence(v.id, v.rev)
			}
			if st.fence == nil {
				st.fence = &Fence{ID: v.id, Revision: v.rev, shape: polygons{}}
			}
		}
		t.link(d, st.fence)
		st.due = t.dueOf(st, d.ts)
	}
	if d.more != nil {
		d.more.entering = t.resolve(d.more.entering, u.entering)
	}
	t.arm(d)
}

// resolve finds the fences of entering counters. One whose fence has changed
// doesn't hold.
func (t *Tracker) resolve(es []entering, versions []version) []entering {
	kept := es[:0]
	for i, v := range versions {
		if f := t.snap.Fence(v.id); f != nil && f.Revision == v.rev {
			e := es[i]
			e.fence = f
			kept = append(kept, e)
		}
	}
	return kept
}

// reader decodes; its first error sticks.
type reader struct {
	data []byte
	err  error
}

var errShort = errors.New("it is cut short")

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.data) {
		if r.err == nil {
			r.err = errShort
		}
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) float() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	return r.take(int(min(n, math.MaxInt32)))
}

// count reads how many items follow, each of some bytes.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.data)) && r.err == nil {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) version() version { return version{string(r.bytes()), r.uvarint()} }

func (r *reader) device(u *unresolved) {
	d := &u.device
	flags := r.byte()
	d.state = judged
	if flags&flagSilent != 0 {
		d.state |= silent
	}
	d.has = Fields(r.byte())
	d.lat, d.lon = r.float(), r.float()
	d.ts, d.stored = r.varint(), r.varint()
	d.seq = r.uvarint()
	m := &more{seq: r.uvarint()}
	for _, field := range d.fields() {
		if d.has&field.bit != 0 {
			*field.value = r.float()
		}
	}
	m.props = slices.Clone(r.bytes())
	for range r.count() {
		u.stays = append(u.stays, r.version())
		st := stay{enteredAt: r.varint(), dwelt: r.varint(), insideAt: r.varint(), outCount: int32(r.varint())}
		if st.outCount > 0 {
			st.outSince = r.varint()
		}
		d.stays = append(d.stays, st)
	}
	for range r.count() {
		u.entering = append(u.entering, r.version())
		e := entering{since: r.varint(), count: int(r.varint())}
		e.initial = r.byte() != 0
		m.entering = append(m.entering, e)
	}
	byID := func(a, b version) int { return cmp.Compare(a.id, b.id) }
	if r.err == nil && !(slices.IsSortedFunc(u.stays, byID) && slices.IsSortedFunc(u.entering, byID)) {
		r.err = errors.New("its fences are out of order")
	}
	if flags&flagGate != 0 {
		m.gate = gate{lat: r.float(), lon: r.float(), ts: r.varint(), count: int(r.uvarint())}
	}
	if flags&flagLeft != 0 {
		m.left = r.varint()
	}
	if m.seq != 0 || len(m.props) > 0 || len(m.entering) > 0 || m.gate.count > 0 || m.left != 0 {
		d.more = m
	}
}

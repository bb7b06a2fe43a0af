package geofence

import (
	"iter"
	"maps"
	"slices"
)

// Presence is what the tracker knows of one device.
type Presence struct {
	Device string
	Newest Fix    // the newest judged fix; Props are the tracker's until its next call
	Seq    uint64 // every fix of the device up to here has been judged
	Silent bool   // it has been told silent since
	Stays  []Stay // sorted by fence id
}

// Stay is the time that a device has spent in a fence so far.
type Stay struct {
	Fence     *Fence
	EnteredAt int64 // device time, unix milliseconds
}

// Presence returns what is known of the device; false if it has no judged fix.
func (t *Tracker) Presence(device string) (Presence, bool) {
	d := t.devices[device]
	if d == nil || !d.judged() {
		return Presence{}, false
	}
	p := Presence{Device: d.id, Newest: d.fix(), Seq: d.position(), Silent: d.state&silent != 0}
	for i := range d.stays {
		p.Stays = append(p.Stays, Stay{d.stays[i].fence, d.stays[i].enteredAt})
	}
	return p, true
}

// Seq is the position up to which all fixes of the device have been judged:
// before the oldest that waits in the reorder buffer. 0: the device is
// unknown.
func (t *Tracker) Seq(device string) uint64 {
	if d := t.devices[device]; d != nil && d.judged() {
		return d.position()
	}
	return 0
}

// Inside yields the devices inside the fence, sorted.
func (t *Tracker) Inside(fenceID string) iter.Seq[string] {
	ids := make([]string, 0, len(t.inside[fenceID]))
	for d := range t.inside[fenceID] {
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	return slices.Values(ids)
}

// Devices yields the tracked devices, in no order.
func (t *Tracker) Devices() iter.Seq[string] { return maps.Keys(t.devices) }

// Len is the number of tracked devices.
func (t *Tracker) Len() int { return len(t.devices) }

// FenceVersions yields every fence version that some presence names, in no
// order. Keep them, so that [Tracker.Restore] finds them.
func (t *Tracker) FenceVersions() iter.Seq[*Fence] { return maps.Keys(t.versions) }

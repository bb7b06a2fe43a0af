package geofence

import (
	"cmp"
	"slices"
)

// device is what a tracker knows of one device. There may be a million of
// them: what few devices need is in more.
type device struct {
	id       string
	lat, lon float64 // of the newest judged fix
	ts       int64
	stored   int64
	// seq is the highest position of a fix that was judged or is buffered.
	seq                           uint64
	accuracy, speed, heading, alt float64
	stays                         []stay // sorted by fence id
	more                          *more  // nil if there is nothing in it
	// safe holds the newest fix's surroundings that no boundary touches, while
	// epoch is the tracker's.
	safe box
	// wake is the clock time at which the device has something to do, while
	// it is in the heap.
	wake  int64
	heap  int32 // index in the heap plus 1; 0 is outside
	epoch uint32
	has   Fields
	state deviceState
	// How well the safe box pays off: fixes that it has served since it was
	// made, the row of boxes that served none, and how many searches to do
	// without one.
	served, idle, wait uint8
}

type deviceState uint8

const (
	judged  deviceState = 1 << iota // has a newest fix
	silent                          // has been told silent
	evicted                         // is not in the tracker any more
)

// more is what few devices need.
type more struct {
	props    []byte     // of the newest fix
	seq      uint64     // the newest fix's own position, if fixes are reordered
	entering []entering // sorted by fence id
	gate     gate
	left     int64 // latest time of an exit without a fix; 0 is none
	buffer   []Fix // waiting for older ones, by TS
}

// stay is a device's time in a fence.
type stay struct {
	fence     *Fence
	enteredAt int64
	dwelt     int64 // ms; dwells up to this have been told
	insideAt  int64 // TS of the last inside transition; 0 is none
	due       int64 // device time of the next timer; forever is none
	outSince  int64 // TS of the first of the fixes that agree it has left
	outCount  int32 // how many they are
	in        bool  // the newest fix confirmed the stay
}

// entering counts the fixes that agree that the device is in a fence.
type entering struct {
	fence   *Fence
	since   int64 // TS of the first
	at      int64 // TS of the last
	count   int
	initial bool // the first was the device's first fix
}

// gate holds the fix that the speed gate refused last.
type gate struct {
	lat, lon float64
	ts       int64
	count    int // how many agree; 0 is none refused
}

func (d *device) extra() *more {
	if d.more == nil {
		d.more = &more{}
	}
	return d.more
}

func (d *device) judged() bool { return d.state&judged != 0 }

func (d *device) point() point { return point{d.lon, d.lat} }

// fix is the newest judged fix. Its props are the device's own.
func (d *device) fix() Fix {
	f := Fix{
		Device: d.id, Lat: d.lat, Lon: d.lon, TS: d.ts, Stored: d.stored, Seq: d.seq,
		Has: d.has, Accuracy: d.accuracy, Speed: d.speed, Heading: d.heading, Alt: d.alt,
	}
	if d.more != nil {
		if len(d.more.props) > 0 {
			f.Props = d.more.props
		}
		if d.more.seq != 0 {
			f.Seq = d.more.seq
		}
	}
	return f
}

// update makes fix the newest. lent says that transitions still refer to the
// props of the last one.
func (d *device) update(fix *Fix, lent bool) {
	d.lat, d.lon, d.ts, d.stored = fix.Lat, fix.Lon, fix.TS, fix.Stored
	d.seq = max(d.seq, fix.Seq)
	d.has = fix.Has
	d.accuracy = ifSet(fix, HasAccuracy, fix.Accuracy)
	d.speed = ifSet(fix, HasSpeed, fix.Speed)
	d.heading = ifSet(fix, HasHeading, fix.Heading)
	d.alt = ifSet(fix, HasAlt, fix.Alt)
	d.state = d.state&^silent | judged
	if d.more == nil && len(fix.Props) == 0 {
		return
	}
	m := d.extra()
	m.gate = gate{}
	if lent {
		m.props = slices.Clone(fix.Props)
	} else {
		m.props = append(m.props[:0], fix.Props...)
	}
}

func ifSet(fix *Fix, bit Fields, v float64) float64 {
	if fix.Has&bit == 0 {
		return 0
	}
	return v
}

// stay returns the place of the stay in the fence with the id, or where it
// belongs.
func (d *device) stay(id string) (int, bool) {
	return slices.BinarySearchFunc(d.stays, id, func(st stay, id string) int {
		return cmp.Compare(st.fence.ID, id)
	})
}

func (d *device) entering(id string) (int, bool) {
	if d.more == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(d.more.entering, id, func(e entering, id string) int {
		return cmp.Compare(e.fence.ID, id)
	})
}

// position is that up to which all fixes have been judged.
func (d *device) position() uint64 {
	if d.more == nil || len(d.more.buffer) == 0 {
		return d.seq
	}
	oldest := d.more.buffer[0].Seq
	for i := range d.more.buffer {
		oldest = min(oldest, d.more.buffer[i].Seq)
	}
	return max(oldest, 1) - 1
}

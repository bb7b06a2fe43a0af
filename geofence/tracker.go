package geofence

import (
	"slices"
	"strings"
)

// Tracker holds the presence of devices. It is not safe for concurrent use:
// one goroutine owns it, and what it returns lasts until the next call.
type Tracker struct {
	cfg      Config
	ix       *Index
	snap     *Snapshot
	devices  map[string]*device
	inside   map[string]map[*device]struct{} // by fence id
	versions map[*Fence]int                  // how many stays name each
	timers   []*device                       // a heap by wake, then id
	stale    map[string]struct{}             // fence ids whose stays came from a restore with another version
	gone     []string                        // forgotten, for Forgotten

	// epoch counts what makes the devices' safe boxes void.
	epoch    uint32
	searches bool // always search, for tests and benchmarks

	// Scratch, valid within one call.
	start int      // of the call's transitions in dst
	hits  []*Fence // around the fix
	left  []*Fence // by the fix
}

// NewTracker returns a tracker over the newest snapshot of ix.
func NewTracker(ix *Index, cfg Config) *Tracker {
	if cfg.MaxFuture == 0 {
		cfg.MaxFuture = defaultMaxFuture
	}
	if cfg.CrossMaxGap == 0 {
		cfg.CrossMaxGap = defaultCrossMaxGap
	}
	cfg.Dwell = slices.Clone(cfg.Dwell)
	slices.Sort(cfg.Dwell)
	return &Tracker{
		cfg: cfg, ix: ix, snap: ix.Snapshot(), epoch: 1,
		devices:  map[string]*device{},
		inside:   map[string]map[*device]struct{}{},
		versions: map[*Fence]int{},
		stale:    map[string]struct{}{},
	}
}

// Track judges a fix and appends the transitions that it makes, in order:
// the device's timers due before the fix, each at its own time; then exits,
// enters, crosses, dwells due at the fix's very time, and insides, each group
// by fence id. now is the caller's clock in unix milliseconds. Timers due by
// that clock are not fired: call [Tracker.Advance] first.
//
// An [Accepted] fix changes its device's presence, and so does a [Teleport];
// a [Buffered] one does when it is released, by a later Track of the device
// or by Advance, though it may make no transition. The other results change
// nothing.
func (t *Tracker) Track(fix *Fix, now int64, dst []Transition) ([]Transition, Result) {
	return t.TrackBy(&Handle{}, fix, now, dst)
}

// Handle remembers a device, so that a caller who keeps something of his own
// for each one saves the tracker the second look-up. The zero Handle is ready
// for use with any one device of one tracker, and stays good when the device
// is forgotten and comes back.
type Handle struct{ d *device }

// TrackBy is [Tracker.Track] with a handle of the fix's device.
func (t *Tracker) TrackBy(h *Handle, fix *Fix, now int64, dst []Transition) ([]Transition, Result) {
	t.start = len(dst)
	if fix.TS > now+t.cfg.MaxFuture.Milliseconds() {
		return dst, Future
	}
	if h.d == nil || h.d.state&evicted != 0 {
		h.d = t.devices[fix.Device]
	}
	d := h.d
	if d == nil {
		d = &device{id: strings.Clone(fix.Device)}
	}
	if t.cfg.Reorder > 0 {
		return t.buffer(d, fix, dst)
	}
	return t.judge(d, fix, dst)
}

// judge is Track without the reorder buffer. It adds the device once it has a
// fix.
func (t *Tracker) judge(d *device, fix *Fix, dst []Transition) ([]Transition, Result) {
	if r := t.refuse(d, fix); r != Accepted {
		return dst, r
	}
	if d.judged() {
		var forgotten bool
		if dst, forgotten = t.fire(d, fix.TS-1, dst); forgotten {
			d = d.successor()
		}
	}
	first := !d.judged()
	if first {
		t.devices[d.id] = d
	}
	before := d.leg()
	d.update(fix, len(dst) > t.start)
	if t.cfg.Reorder > 0 {
		d.extra().seq = fix.Seq
	}
	if d.epoch == t.epoch && d.safe.contains(d.point()) && !first {
		d.served = min(d.served, 254) + 1
		if len(d.stays) > 0 {
			dst, _ = t.fire(d, fix.TS, dst)
		}
		t.arm(d)
		return dst, Accepted
	}
	t.leaveSafe(d)
	t.hits = t.snap.Match(fix.Lat, fix.Lon, t.hits[:0])
	dst = t.leave(d, fix, dst)
	dst = t.enter(d, fix, first, dst)
	if t.cfg.Cross && !first {
		dst = t.cross(d, before, fix, dst)
	}
	dst, _ = t.fire(d, fix.TS, dst)
	if t.cfg.Inside {
		dst = t.tellInside(d, dst)
	}
	t.arm(d)
	t.makeSafe(d, before, first)
	return dst, Accepted
}

// leg is where and when a device was before a fix.
type leg struct {
	from point
	ts   int64
	has  Fields
	acc  float64
	alt  float64
}

func (d *device) leg() leg { return leg{d.point(), d.ts, d.has, d.accuracy, d.alt} }

// refuse says what keeps a fix from being judged; [Accepted] is nothing.
func (t *Tracker) refuse(d *device, fix *Fix) Result {
	switch {
	case d.judged() && fix.TS < d.ts:
		return Late
	case d.judged() && fix.TS == d.ts:
		return Duplicate
	case !t.accurate(d, fix):
		return Inaccurate
	case t.cfg.MaxSpeed > 0 && d.judged() && !t.forgets(d, fix.TS-1) && !t.gate(d, fix):
		d.seq = max(d.seq, fix.Seq)
		return Teleport
	}
	return Accepted
}

// accurate says whether the fix counts for anything: it is as accurate as
// configured, or a fence that it concerns takes it by its own rule.
func (t *Tracker) accurate(d *device, fix *Fix) bool {
	limit := t.cfg.MaxAccuracyM
	switch {
	case fix.Has&HasAccuracy == 0 || limit == 0 || fix.Accuracy <= limit:
		return true
	case fix.Accuracy > t.snap.coarsest:
		return false
	}
	t.hits = t.snap.Match(fix.Lat, fix.Lon, t.hits[:0])
	for _, f := range t.hits {
		if t.cfg.takes(f, fix) {
			return true
		}
	}
	for i := range d.stays {
		if t.cfg.takes(d.stays[i].fence, fix) {
			return true
		}
	}
	return false
}

// gateOpensAt is how many fixes in a row have to agree on a place that the
// speed gate refuses, until it is believed.
const gateOpensAt = 3

// gate says whether the device can have moved to the fix so fast. A refused
// fix is kept: later ones that agree with it open the gate.
func (t *Tracker) gate(d *device, fix *Fix) bool {
	if t.reachable(d.point(), d.ts, d.slack(), fix) {
		return true
	}
	g := &d.extra().gate
	if g.count > 0 && fix.TS > g.ts && t.reachable(point{g.lon, g.lat}, g.ts, 0, fix) {
		g.count++
	} else {
		g.count = 1
	}
	if g.count >= gateOpensAt {
		return true
	}
	g.lat, g.lon, g.ts = fix.Lat, fix.Lon, fix.TS
	return false
}

// slack is the uncertainty of the newest fix, in metres.
func (d *device) slack() float64 {
	if d.has&HasAccuracy == 0 {
		return 0
	}
	return d.accuracy
}

func (t *Tracker) reachable(from point, ts int64, slack float64, fix *Fix) bool {
	if fix.Has&HasAccuracy != 0 {
		slack += fix.Accuracy
	}
	m := distance(from, point{fix.Lon, fix.Lat}) - slack
	return m <= t.cfg.MaxSpeed*float64(fix.TS-ts)/1000
}

// Forget evicts the device without any transition; false if it is unknown.
func (t *Tracker) Forget(device string) bool {
	d := t.devices[device]
	if d == nil {
		return false
	}
	t.evict(d)
	return true
}

func (t *Tracker) evict(d *device) {
	for i := range d.stays {
		t.unlink(d, d.stays[i].fence)
	}
	d.stays = nil
	d.state |= evicted
	t.disarm(d)
	delete(t.devices, d.id)
}

// successor is what takes the place of a forgotten device: nothing is known
// of it but the fixes that wait.
func (d *device) successor() *device {
	next := &device{id: d.id, seq: d.seq}
	if buffer := d.buffered(); len(buffer) > 0 {
		next.more = &more{buffer: buffer}
	}
	return next
}

// link notes that the device is inside f; unlink undoes it.
func (t *Tracker) link(d *device, f *Fence) {
	set := t.inside[f.ID]
	if set == nil {
		set = map[*device]struct{}{}
		t.inside[f.ID] = set
	}
	set[d] = struct{}{}
	t.versions[f]++
}

func (t *Tracker) unlink(d *device, f *Fence) {
	delete(t.inside[f.ID], d)
	if len(t.inside[f.ID]) == 0 {
		delete(t.inside, f.ID)
	}
	if t.versions[f]--; t.versions[f] == 0 {
		delete(t.versions, f)
	}
}

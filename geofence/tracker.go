package geofence

import (
	"iter"
	"time"
)

// Config holds the rules of a [Tracker]. The zero value is the default.
// Fences override ExitBufferM, Confirm, Dwell and MaxAccuracyM.
type Config struct {
	// MaxFuture is how far a fix may be ahead of the clock; 0 means 5 minutes.
	MaxFuture time.Duration
	// CrossMaxGap is the longest time between two fixes that may make a
	// cross; 0 means 2 minutes.
	CrossMaxGap time.Duration
	// SilentInitial drops the enter that a device's first fix would make; the
	// stay is recorded all the same.
	SilentInitial bool
	// ExitBufferM, in metres: a device has left only when it is farther than
	// this from the fence. 0 is off.
	ExitBufferM float64
	// Confirm is how many consecutive fixes must agree before a device has
	// entered or left; 0 and 1 are off. Where it is 2 or more there is no
	// cross, which rests on no fix at all.
	Confirm int
	// Dwell lists the durations that a stay is reported at.
	Dwell []time.Duration
	// MaxAccuracyM, in metres: fixes less accurate than this change nothing.
	// 0 is off.
	MaxAccuracyM float64
	// Reorder is how long a fix may wait for older ones; 0 is off.
	Reorder time.Duration
	// MaxSpeed, in metres per second, is the speed gate's: a fix that implies
	// a higher speed is refused. 0 is off.
	MaxSpeed float64
	// Cross and Inside say whether these kinds are wanted: unused ones cost
	// nothing.
	Cross, Inside bool
	// InsideEvery is the shortest device time between two inside transitions
	// of one device and fence; 0 is one per fix.
	InsideEvery time.Duration
	// SilentAfter is how long a device may report nothing before it is
	// silent; 0 is off.
	SilentAfter time.Duration
	// ForgetAfter is how long a device may report nothing before its presence
	// is evicted, without any transition; 0 is off.
	ForgetAfter time.Duration
}

// Presence is what the tracker knows of one device.
type Presence struct {
	Device string
	Newest Fix    // the newest judged fix
	Seq    uint64 // every fix of the device up to here has been judged
	Silent bool
	Stays  []Stay // sorted by fence id
}

// Stay is the time that a device has spent in a fence so far.
type Stay struct {
	Fence     *Fence
	EnteredAt int64 // unix ms
}

// Tracker holds the presence of devices. It is not safe for concurrent use.
type Tracker struct{}

// NewTracker returns a tracker over the newest snapshot of ix.
func NewTracker(ix *Index, cfg Config) *Tracker { return &Tracker{} }

// Track judges a fix and appends the transitions that it makes, in order.
// now is the caller's clock in unix milliseconds. Timers due by that clock
// are not fired: call [Tracker.Advance] first.
func (t *Tracker) Track(fix *Fix, now int64, dst []Transition) ([]Transition, Result) {
	return dst, Accepted
}

// Advance fires all that is due when the clock reads now.
func (t *Tracker) Advance(now int64, dst []Transition) []Transition { return dst }

// Next returns the clock time at which Advance will next have something to
// do, if ever.
func (t *Tracker) Next() (now int64, ok bool) { return 0, false }

// Pending says whether any timer waits.
func (t *Tracker) Pending() bool { return false }

// Refence moves to the index's newest snapshot and judges devices that are
// inside changed or deleted fences again, with their newest fix.
func (t *Tracker) Refence(now int64, dst []Transition) []Transition { return dst }

// AppendPresence appends the device's encoded presence; false if there is
// nothing to save of it.
func (t *Tracker) AppendPresence(dst []byte, device string) ([]byte, bool) { return dst, false }

// Restore loads an encoded presence. fence returns a fence's version by id
// and revision, or nil if that is gone.
func (t *Tracker) Restore(device string, enc []byte, fence func(id string, rev uint64) *Fence) error {
	return nil
}

// Seq is the position up to which all fixes of the device have been judged;
// 0 if it is unknown.
func (t *Tracker) Seq(device string) uint64 { return 0 }

// Forget evicts the device; false if it is unknown.
func (t *Tracker) Forget(device string) bool { return false }

// Forgotten appends the devices that Config.ForgetAfter evicted since the
// last call, sorted.
func (t *Tracker) Forgotten(dst []string) []string { return dst }

// Presence returns what is known of the device.
func (t *Tracker) Presence(device string) (Presence, bool) { return Presence{}, false }

// Inside yields the devices inside the fence, sorted.
func (t *Tracker) Inside(fenceID string) iter.Seq[string] { return func(func(string) bool) {} }

// Devices yields the tracked devices, in no order.
func (t *Tracker) Devices() iter.Seq[string] { return func(func(string) bool) {} }

// Len is the number of tracked devices.
func (t *Tracker) Len() int { return 0 }

// FenceVersions yields every fence version that some presence names.
func (t *Tracker) FenceVersions() iter.Seq[*Fence] { return func(func(*Fence) bool) {} }

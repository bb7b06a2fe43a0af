package geofence

import "time"

// Fields says which optional fields of a [Fix] are set.
type Fields uint8

// The optional fields of a Fix.
const (
	HasAccuracy Fields = 1 << iota
	HasSpeed
	HasHeading
	HasAlt
)

// Fix is one reported position of a device.
type Fix struct {
	Device string
	// Lat and Lon are WGS 84 degrees, -90..90 and -180..180.
	Lat, Lon float64
	// TS is when the device was there, in unix milliseconds.
	TS int64
	// Stored is when the fix reached the log it was read from, in unix
	// milliseconds; it never falls from one fix to the next.
	Stored int64
	// Seq is the fix's position in that log. The tracker only carries it, so
	// that a presence says up to where its device has been judged.
	Seq uint64

	Has      Fields
	Accuracy float64 // metres, radius of the position's uncertainty
	Speed    float64 // metres per second
	Heading  float64 // degrees clockwise from north
	Alt      float64 // metres above the WGS 84 ellipsoid, as reported

	// Props is the raw JSON object of further properties, or nil. It is only
	// valid during the call that it is passed to; what is kept is copied.
	Props []byte
}

// Kind says what happened between a device and a fence.
type Kind uint8

// The kinds of transition.
const (
	Enter Kind = iota + 1
	Exit
	Dwell
	Cross
	Inside
	Silent // a device stopped reporting; has no fence
)

// Reasons of a [Transition] that no fix alone caused.
const (
	ReasonFenceDeleted = "fence_deleted"
	ReasonFenceChanged = "fence_changed"
	ReasonInactive     = "inactive"
)

// Transition is what happened between a device and a fence.
type Transition struct {
	Kind   Kind
	Device string
	Fence  *Fence // the version that was judged; nil for Silent
	// At is the device time at which it happened, in unix milliseconds: the
	// deciding fix's TS for enter and exit, EnteredAt plus Dwell for a dwell,
	// ExitedAt for a cross.
	At int64
	// Since is the TS of the first of the fixes that confirmed an enter or
	// exit; At is that of the last. Equal to At without `confirm`.
	Since int64
	// EnteredAt is when the stay began, 0 where there was none to speak of;
	// ExitedAt is set for exit and cross.
	EnteredAt, ExitedAt int64
	Dwell               time.Duration // the duration that was reached, for Dwell
	Initial             bool          // an enter by the first fix of the device
	Reason              string        // "" or one of the Reason constants
	// Revision is that of the fence version whose arrival caused the
	// transition, 0 if a fix or a timer did.
	Revision uint64
	// Fix is the newest accepted fix of the device: the deciding one, or the
	// one that was judged again. Its Props are only valid during the call
	// that returned the transition.
	Fix Fix
}

// Result says what became of a fix.
type Result uint8

// The results of [Tracker.Track].
const (
	Accepted   Result = iota // judged
	Buffered                 // waits in the reorder buffer
	Late                     // older than the device's newest: changed nothing
	Duplicate                // has the TS of the device's newest: changed nothing
	Future                   // further ahead of the clock than max_future: refused
	Inaccurate               // accuracy worse than allowed: changed nothing
	Teleport                 // refused by the speed gate
)

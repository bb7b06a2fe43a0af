package ingest

import (
	"errors"
	"fmt"
)

// MaxPayload is the largest location payload that is accepted, in bytes.
const MaxPayload = 64 << 10

// ErrIgnored says that a payload is well-formed but carries no location, such
// as OwnTracks' waypoints and last-will messages. It is not a fault.
var ErrIgnored = errors.New("carries no location")

// Reason says why a location was refused. The set is small and fixed: the
// reasons are the values of a metric's label and the last token of
// <namespace>.rejected.<reason>.
type Reason string

// The reasons of a refusal.
const (
	Malformed Reason = "malformed" // not a JSON object, or a key of the wrong type
	Missing   Reason = "missing"   // lat, lon or both are not there
	Range     Reason = "range"     // a number outside what it can be
	Timestamp Reason = "timestamp" // ts that is no time
	Oversized Reason = "oversized" // more than MaxPayload bytes
	Encoding  Reason = "encoding"  // not UTF-8
	Device    Reason = "device"    // no valid device id, or not that of the subject
	Encrypted Reason = "encrypted" // OwnTracks' payload encryption is on
)

// Future is the reason of a location that could be read and was refused when it
// was judged; see [intake.Reject]. It is counted there.
const Future Reason = "future"

// Reasons of a submit that was valid but could not be stored.
const (
	Unavailable Reason = "unavailable" // NATS did not confirm it
	Full        Reason = "full"        // the location stream has no room
)

// Reasons lists every reason that a location can be refused for while it is
// read.
func Reasons() []Reason {
	return []Reason{Malformed, Missing, Range, Timestamp, Oversized, Encoding, Device, Encrypted}
}

// Refusal is the error of a location that was refused.
type Refusal struct {
	Reason Reason
	Detail string // what is wrong and, where it is known, what to do
}

func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Detail }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

package router

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"

	"github.com/tripline/tripline/geofence"
)

// TriggerID returns the id of a transition's trigger: 26 characters of
// base32 (RFC 4648, no padding) for the first 128 bits of SHA-256 over six
// fields, each preceded by its length in bytes as 32 bits big-endian:
//
//	device, fence id, transition's name, at, entered_at, detail
//
// at and entered_at are unix milliseconds in decimal. detail is what tells
// transitions apart that share the rest: for a dwell its duration in
// milliseconds, for a transition that a fence change caused the revision of
// that version, else nothing. So the id depends on what happened and on
// nothing else: not on the process, the replay, the consumer or the wall
// clock.
func TriggerID(tr *geofence.Transition) string {
	// Large enough for the usual ids; longer ones move to the heap.
	var room [256]byte
	b := room[:0]
	fence := ""
	if tr.Fence != nil {
		fence = tr.Fence.ID
	}
	b = appendField(b, tr.Device)
	b = appendField(b, fence)
	b = appendField(b, tr.Kind.String())
	var num [20]byte
	b = appendField(b, strconv.AppendInt(num[:0], tr.At, 10))
	b = appendField(b, strconv.AppendInt(num[:0], tr.EnteredAt, 10))
	b = appendField(b, appendDetail(num[:0], tr))

	sum := sha256.Sum256(b)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

func appendDetail(dst []byte, tr *geofence.Transition) []byte {
	switch {
	case tr.Kind == geofence.Dwell:
		return strconv.AppendInt(dst, tr.Dwell.Milliseconds(), 10)
	case tr.Revision != 0:
		return strconv.AppendUint(dst, tr.Revision, 10)
	}
	return dst
}

func appendField[T string | []byte](dst []byte, field T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(field)))
	return append(dst, field...)
}

// Kinds lists the kinds of transition in the order of their values.
func Kinds() []geofence.Kind {
	return []geofence.Kind{
		geofence.Enter, geofence.Exit, geofence.Dwell,
		geofence.Cross, geofence.Inside, geofence.Silent,
	}
}

// Widths of the two parts of a sequence. A uint64 has at most 20 digits.
const (
	positionDigits = 20
	ordinalDigits  = 6
)

// Sequence encodes a place in a device's order: the position of the message
// at which the transition was judged, then the transition's ordinal among
// those of the device at that position. Its width is fixed, so that the order
// of the strings is the order of the numbers.
func Sequence(position uint64, ordinal uint32) string {
	var b [positionDigits + 1 + ordinalDigits]byte
	for i := positionDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + position%10)
		position /= 10
	}
	b[positionDigits] = '.'
	for i := len(b) - 1; i > positionDigits; i-- {
		b[i] = byte('0' + ordinal%10)
		ordinal /= 10
	}
	return string(b[:])
}

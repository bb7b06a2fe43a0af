// Package router turns transitions into triggers and hands them to the
// outlets of the consumers that want them. A partition owns its devices: one
// goroutine judges their fixes, in order, and tracks which of their triggers
// are settled, so that progress never passes one that isn't.
package router

import (
	"context"
	"time"

	"github.com/tripline/tripline/geofence"
)

// Priority orders the slots of a consumer when its backlog is probed.
type Priority uint8

// The priorities. The zero value is Normal.
const (
	Normal Priority = iota
	High            // somebody waits for it
	Low             // batch work
)

// Slots is how many slots a partition has. It is part of the stored format.
const Slots = 256

// Trigger is a transition addressed to a consumer, encoded once.
type Trigger struct {
	// ID is the same for a repeat of the same transition and for no other.
	ID string
	// Sequence has a fixed width and rises per device: a consumer that keeps
	// the highest it has seen of a device can drop late duplicates.
	Sequence string
	Device   string
	Fence    string // fence id; "" for a transition that has none
	Kind     geofence.Kind
	At       int64 // device time, unix milliseconds

	Partition int
	Slot      int // 0..Slots-1, see SlotOf
	Priority  Priority
	Redriven  bool // sent again by an operator

	// Body is the CloudEvents JSON. It is shared between consumers: nobody
	// writes to it.
	Body []byte
	// Traceparent is the W3C trace context of the location's message, or "".
	Traceparent string
	// Read is when the location was read from NATS, with a monotonic clock;
	// zero for a trigger that comes out of a queue after a restart.
	Read time.Time
}

// Outlet takes the triggers of one consumer.
type Outlet interface {
	// Offer hands over a trigger. It calls settled at most once, from any
	// goroutine, also before it returns, when the trigger is delivered,
	// durably parked, dead-lettered, or dropped where the configuration says
	// so. It does not wait for the consumer; it blocks only where the
	// configuration prefers that to a loss (a full queue with on_full: block,
	// or the byte bound of what waits for a park). When ctx ends it returns
	// with the trigger unsettled; the trigger comes again after a restart.
	//
	// Triggers of one device must be offered in order, from one goroutine.
	Offer(ctx context.Context, t Trigger, settled func())
}

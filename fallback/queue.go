package fallback

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tripline/tripline/router"
)

// Slot names the unit of order inside a consumer: the devices of one hash
// value within one partition.
type Slot struct {
	Partition int // 0..P-1
	Index     int // 0..255: FNV-1a 32 of the device id, mod 256
}

// Item is a parked trigger.
type Item struct {
	Trigger router.Trigger
	Seq     uint64    // position in the queue; rises in the order of parking
	Parked  time.Time // when it was parked
	Reason  Reason    // why it was diverted
	Size    int       // bytes it takes in the queue
}

// DeadLetter is a trigger that was given up on, and why.
type DeadLetter struct {
	Trigger  router.Trigger
	Seq      uint64 // position among the dead letters
	Reason   DeadReason
	Attempts int       // calls made for it, since the last start
	Error    string    // the last error, secrets redacted
	Parked   time.Time // when it was first parked; zero if it never was
	Died     time.Time
}

// Errors of a Queue.
var (
	// ErrFull says that the queue has no room. Nothing was stored.
	ErrFull = errors.New("fallback queue is full")
	// ErrDuplicate comes with a park that had been stored before: the answer
	// of an earlier try was lost. It must not be counted again.
	ErrDuplicate = errors.New("already parked")
	// ErrClosed says that the queue was closed.
	ErrClosed = errors.New("fallback queue is closed")
)

// Usage is how full a queue is.
type Usage struct {
	Items    int
	Bytes    uint64
	MaxBytes uint64 // 0: no bound
}

// Queue keeps one consumer's parked triggers and dead letters durably.
//
// All methods may be called at once from any goroutine. The caller keeps at
// most one unanswered Park per slot, and calls Head and Delete of a slot from
// one goroutine at a time. An error that is none of the ones named here means
// "not known": the step may have been applied, and repeating it is safe.
type Queue interface {
	// Park stores a trigger at the end of its slot, asynchronously: done is
	// called once, from any goroutine, when the trigger is durable (nil, or
	// ErrDuplicate) or was not stored or may not have been (ErrFull, or
	// another error). A repeated Park of the same trigger stores it once, so
	// long as it follows within two minutes; but one that is Redriven is no
	// repeat of what it was before it died.
	Park(t router.Trigger, reason Reason, done func(seq uint64, err error))
	// Head returns the first item of a slot whose Seq is after the given
	// one; false if there is none. It never answers false while the slot
	// has one that was durable when the call began.
	Head(ctx context.Context, s Slot, after uint64) (Item, bool, error)
	// Delete removes an item for good. Removing it twice is no error. One that
	// Head was told to pass over may be deleted while Head is asked.
	Delete(ctx context.Context, seq uint64) error
	// Table counts the items of each slot of a partition that has any.
	Table(ctx context.Context, partition int) (map[Slot]int, error)
	// Oldest returns the item with the lowest Seq of all partitions.
	Oldest(ctx context.Context) (Item, bool, error)
	// Usage is the queue's size as last known; it doesn't wait.
	Usage() Usage
	// Bury stores a dead letter durably. The item that it comes from, if
	// any, is deleted by the caller afterwards. ErrFull: no room. A repeat,
	// known by the trigger's id and Died, is stored once.
	Bury(ctx context.Context, d DeadLetter) error
}

// Filter narrows a listing. Zero fields accept everything.
type Filter struct {
	Fence, Device string        // exact ids
	OlderThan     time.Duration // parked or died at least this long ago
	After         uint64        // only entries whose Seq is above
}

// Inspector is what an operator's tools need of a queue beyond [Queue].
type Inspector interface {
	// Items lists what is parked, in order of Seq.
	Items(ctx context.Context, f Filter) iter.Seq2[Item, error]
	// Dead lists the dead letters, in order of Seq.
	Dead(ctx context.Context, f Filter) iter.Seq2[DeadLetter, error]
	// DeleteDead removes a dead letter for good. Twice is no error.
	DeleteDead(ctx context.Context, seq uint64) error
}

// Reason says why a trigger was diverted into the queue.
type Reason string

// The reasons of a divert; they are the values of the metric's label.
const (
	ReasonOpen     Reason = "open"      // the breaker is open
	ReasonProbeCap Reason = "probe_cap" // half-open, and all probes are out
	ReasonFailed   Reason = "failed"    // the call failed
	ReasonLaneFull Reason = "lane_full"
	ReasonOrder    Reason = "order"    // an earlier trigger of its slot is parked
	ReasonDisabled Reason = "disabled" // the consumer answered 410
	ReasonRamp     Reason = "ramp"     // the lane is short while the ramp is in force
	ReasonShutdown Reason = "shutdown"
	ReasonRedrive  Reason = "redrive" // an operator sent a dead letter again
)

// DeadReason says why a trigger was given up on.
type DeadReason string

// The reasons of a dead letter; they are the values of the metric's label.
const (
	DeadRejected    DeadReason = "rejected"     // the consumer will never take it
	DeadMaxAttempts DeadReason = "max_attempts" // called often enough
	DeadExpired     DeadReason = "expired"      // older than max_age at its turn
	DeadOverflow    DeadReason = "overflow"     // made room in a full queue
	DeadUnsent      DeadReason = "unsent"       // our own fault: it can't be sent
)

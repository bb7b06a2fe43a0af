package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// Hooks tell what an outlet does. Any of them may be nil. They are called
// without a lock, from any of the outlet's goroutines, several at once; they
// must be quick. The breaker has its own, see [breaker.Hooks].
type Hooks struct {
	// Delivered is told of each call that was made.
	Delivered func(Delivery)
	// Probed is told what the breaker made of a probe.
	Probed func(breaker.Verdict)
	// Diverted is told of each trigger that has become durable in the queue,
	// once, and why it went there.
	Diverted func(Reason)
	// Replayed is told of each parked trigger that the consumer has taken,
	// and how long it was parked.
	Replayed func(parked time.Duration)
	// Died is told of each dead letter.
	Died func(DeadReason)
	// Dropped is told of each trigger that a full queue cost, with OnFull:
	// Drop.
	Dropped func()
	// Disabled is told that the consumer answered 410.
	Disabled func()
	// QueueError is told of an answer of the queue that was no plain no: what
	// was being done, and the error. The step is repeated.
	QueueError func(doing string, err error)
	// Panicked is told of a panic in the sink or the health check.
	Panicked func(value any, stack []byte)
}

// Delivery is a call that was made.
type Delivery struct {
	Trigger *router.Trigger // only valid during the call
	Outcome Outcome
	Latency time.Duration
	// Since is how long ago the location was read, 0 if that is not known or
	// the trigger was parked in between.
	Since    time.Duration
	Replayed bool // it came out of the queue
	Probe    bool
	Verdict  breaker.Verdict
	Error    string // "" for a delivered one
}

// Outcome says how a call ended; it is the value of the metric's label.
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeFailed      Outcome = "failed"
	OutcomeTimeout     Outcome = "timeout"
	OutcomeRejected    Outcome = "rejected"
	OutcomeThrottled   Outcome = "throttled"
	OutcomeUnavailable Outcome = "unavailable"
	OutcomeGone        Outcome = "gone"
	OutcomeUnsent      Outcome = "unsent"
	OutcomeCancelled   Outcome = "cancelled"
)

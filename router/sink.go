package router

import (
	"context"
	"fmt"
	"time"
)

// Sink delivers one trigger to a consumer.
type Sink interface {
	// Deliver makes one attempt: no retry, no hedge. nil means that the
	// consumer has taken the trigger. The error is a *DeliveryError where the
	// sink knows more than that it failed. It returns soon after ctx ends;
	// ctx carries the deadline of the whole attempt. Any number of goroutines
	// may call it at once.
	Deliver(ctx context.Context, t Trigger) error
}

// Cause says what kind of failure a delivery met.
type Cause uint8

// The causes. Any error that isn't a *DeliveryError is Failed.
const (
	// Failed: the consumer did not take it; another attempt may succeed.
	Failed Cause = iota
	// Rejected: the consumer is well, and will never take this trigger.
	Rejected
	// Throttled: the consumer asked for fewer calls.
	Throttled
	// Unavailable: the consumer said that it is not able to serve.
	Unavailable
	// Gone: the consumer does not want any trigger, ever.
	Gone
	// Unsent: nothing was sent, the fault is ours (a trigger that can't be
	// encoded, a URL that the egress rule forbids).
	Unsent
)

// DeliveryError is a failed delivery of which the sink knows the cause.
type DeliveryError struct {
	Cause      Cause
	Status     int           // HTTP status, 0 where there was none
	RetryAfter time.Duration // what the consumer asked for, 0 for nothing
	Err        error         // no secret in it
}

func (e *DeliveryError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("answered %d: %v", e.Status, e.Err)
	}
	return e.Err.Error()
}

func (e *DeliveryError) Unwrap() error { return e.Err }

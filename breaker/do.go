package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CallReason says why [Breaker.Do] returned an error.
type CallReason uint8

// The reasons of a [CallError].
const (
	CallOpen     CallReason = iota // not called: the breaker is open
	CallProbeCap                   // not called: half-open with all probes in flight
	CallSlow                       // called; failed after more than P99
	CallFailed                     // called; failed within P99
)

// String returns "open", "probe_cap", "slow" or "failed".
func (r CallReason) String() string { return inWords(r, "open", "probe_cap", "slow", "failed") }

// CallError is the error of [Breaker.Do]. It wraps what the call returned, or
// the breaker's own [ErrOpen] or [ErrProbeCap].
type CallError struct {
	Reason CallReason
	Err    error
}

func (e *CallError) Error() string { return fmt.Sprintf("%v: %v", e.Reason, e.Err) }

func (e *CallError) Unwrap() error { return e.Err }

// ignoredError marks an error that is not the consumer's fault.
type ignoredError struct{ error }

func (e ignoredError) Unwrap() error { return e.error }

// Ignore marks an error of a call as the caller's own fault (a request that a
// local validation rejected, say): [Breaker.Do] gives the permit back without
// judging the consumer. Ignore(nil) is nil.
func Ignore(err error) error {
	if err == nil {
		return nil
	}
	return ignoredError{err}
}

// Do calls fn if the breaker admits it, with the configured timeout on its
// context, and reports how it ended, at the time of [Now]. A nil error is OK;
// one marked with [Ignore] is ignored; if ctx itself has ended the call was
// cancelled; any other error, a panic and a runtime.Goexit have failed. An
// error with a method RetryAfter() time.Duration passes on the consumer's
// wish.
//
// The error is nil if fn returned nil, however long that took; fn's own if
// it was ignored or cancelled; else a [*CallError].
func (b *Breaker) Do(ctx context.Context, fn func(context.Context) error) error {
	p, err := b.Admit(Now())
	if err != nil {
		reason := CallOpen
		if errors.Is(err, ErrProbeCap) {
			reason = CallProbeCap
		}
		return &CallError{reason, err}
	}
	outcome := Outcome{Kind: Failed} // what a panic leaves behind
	defer func() { p.Report(Now(), outcome) }()

	callCtx, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	err = fn(callCtx)
	outcome = outcomeOf(ctx, err)
	if outcome.Kind != Failed {
		return err
	}
	if Now()-p.begin > b.cfg.P99 {
		return &CallError{CallSlow, err}
	}
	return &CallError{CallFailed, err}
}

// outcomeOf reads an error of a call made under ctx.
func outcomeOf(ctx context.Context, err error) Outcome {
	if err == nil {
		return Outcome{Kind: OK}
	}
	if _, ok := errors.AsType[ignoredError](err); ok {
		return Outcome{Kind: Ignored}
	}
	if ctx.Err() != nil {
		return Outcome{Kind: Cancelled}
	}
	o := Outcome{Kind: Failed}
	if asks, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		o.RetryAfter = asks.RetryAfter()
	}
	return o
}

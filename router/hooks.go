package router

import (
	"time"

	"github.com/tripline/tripline/geofence"
)

// Hooks tell what a partition does, for metrics, logs and the live page. Each
// may be nil. They are called from the partition's goroutines and hold them
// up: they must be quick and must not call the partition. What a pointer
// leads to is only valid during the call.
type Hooks struct {
	// Fix: a fix was judged. Fixes that a restart reads again, though a saved
	// presence contains them, are not told.
	Fix func(fix *geofence.Fix, result geofence.Result)
	// Judged: a batch of so many messages was judged, and that took so long,
	// offers included.
	Judged func(messages int, took time.Duration)
	// Transition: a transition happened, and this many consumers want it.
	Transition func(tr *geofence.Transition, consumers int)
	// WhereFailed: a consumer's `where` could not be evaluated, so it did not
	// match.
	WhereFailed func(consumer string, err error)
	// ClaimFailed: the partition could not be claimed, or what was saved not
	// loaded; it is tried again, and nothing is judged until then.
	ClaimFailed func(err error)
	// Committed: a commit with this many presences ended. A nil error means
	// that it is durable; another one is repeated, save ErrFenced.
	Committed func(took time.Duration, presences int, err error)
	// ReaderRestarted: reading broke off or went silent, for this reason, and
	// begins anew from the last position.
	ReaderRestarted func(reason error)
	// TickFailed: a tick could not be stored; timers stand still until one
	// is, or until a location comes.
	TickFailed func(err error)
}

func (h *Hooks) fix(fix *geofence.Fix, result geofence.Result) {
	if h.Fix != nil {
		h.Fix(fix, result)
	}
}

func (h *Hooks) judged(messages int, took time.Duration) {
	if h.Judged != nil {
		h.Judged(messages, took)
	}
}

func (h *Hooks) transition(tr *geofence.Transition, consumers int) {
	if h.Transition != nil {
		h.Transition(tr, consumers)
	}
}

func (h *Hooks) whereFailed(consumer string, err error) {
	if h.WhereFailed != nil {
		h.WhereFailed(consumer, err)
	}
}

func (h *Hooks) claimFailed(err error) {
	if h.ClaimFailed != nil {
		h.ClaimFailed(err)
	}
}

func (h *Hooks) committed(took time.Duration, presences int, err error) {
	if h.Committed != nil {
		h.Committed(took, presences, err)
	}
}

func (h *Hooks) readerRestarted(reason error) {
	if h.ReaderRestarted != nil {
		h.ReaderRestarted(reason)
	}
}

func (h *Hooks) tickFailed(err error) {
	if h.TickFailed != nil {
		h.TickFailed(err)
	}
}

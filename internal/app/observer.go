package app

import (
	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/geofence"
)

// Observer is told what the running service does. Any field may be nil. The
// functions are called from several goroutines and must be quick; what a
// pointer leads to is only valid during the call.
type Observer struct {
	// Transition: it happened, and these consumers want it.
	Transition func(tr *geofence.Transition, consumers int)
	// Breaker: a consumer's breaker changed its state.
	Breaker func(consumer string, t breaker.Transition)
	// Diverted: a trigger became durable in the consumer's fallback queue.
	Diverted func(consumer string, reason fallback.Reason)
	// Delivered: a call to the consumer ended, well or not.
	Delivered func(consumer string, d fallback.Delivery)
}

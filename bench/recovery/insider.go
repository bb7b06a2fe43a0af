package main

import (
	"sync"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/app"
)

// insider watches the consumer that the product itself protects.
type insider struct {
	name   string
	began  time.Time
	mu     sync.Mutex // guards all below
	tally  tally
	parked int // when last looked
}

func newInsider(name string, sc *scenario, began time.Time) *insider {
	return &insider{name: name, began: began, tally: tally{heals: sc.outage, closedAt: -1, drainedAt: -1}}
}

func (in *insider) observer() app.Observer {
	return app.Observer{
		Delivered: func(consumer string, d fallback.Delivery) {
			if consumer != in.name || d.Outcome == fallback.OutcomeCancelled {
				return
			}
			now := time.Since(in.began)
			in.mu.Lock()
			defer in.mu.Unlock()
			in.tally.call(now-d.Latency, now, d.Outcome == fallback.OutcomeOK)
		},
		Breaker: func(consumer string, t breaker.Transition) {
			if consumer != in.name {
				return
			}
			now := time.Since(in.began)
			in.mu.Lock()
			defer in.mu.Unlock()
			// The call that decided it isn't known: the latest that it can
			// have begun is taken for its start.
			in.tally.moved(now, t.To, t.Window, now-limit-1, in.parked)
		},
	}
}

// look notes how long the backlog is.
func (in *insider) look(all []live.Consumer) {
	now := time.Since(in.began)
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range all {
		if c.Name == in.name {
			in.parked = c.Backlog.Items
		}
	}
	if t := &in.tally; in.parked == 0 && now >= t.heals && t.closedAt >= 0 && t.drainedAt < 0 {
		t.drainedAt = now
	}
}

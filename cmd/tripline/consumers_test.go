package main

import (
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

func TestReasonOf(t *testing.T) {
	refused := []live.Error{{At: time.Now(), Text: "POST http://127.0.0.1:9000: connection refused"}}
	before := []live.Error{{At: time.Now().Add(-time.Hour), Text: "POST http://127.0.0.1:9000: connection refused"}}
	parked := live.Backlog{Items: 6}
	for want, k := range map[string]live.Consumer{
		"":                            {State: "closed"},
		"ramp: 2 of 16 calls at once": {State: "closed", RampWindow: 2, Concurrency: 16, Backlog: parked, DeliveredPerS: 1, LastErrors: refused},
		"ramp: 3 of 16 calls at once": {State: "closed", RampWindow: 3, Concurrency: 16, Backlog: parked, LastErrors: before},
		"failing: POST http://127.0.0.1:9000: connection refused": {State: "closed", RampWindow: 2, Concurrency: 16, Backlog: parked, LastErrors: refused},
		"4 of 5 calls failed": {State: "open", Reason: "4 of 5 calls failed", Backlog: parked, LastErrors: refused},
	} {
		if got := reasonOf(k); got != want {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
	}
}

// Package sinktest holds every sink to the contract of [router.Sink].
package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// patience bounds every wait of the suite; the machine may be busy.
const patience = 20 * time.Second

// Behaviour is how a consumer treats what comes next.
type Behaviour int

// The behaviours.
const (
	Accept Behaviour = iota // take it
	Refuse                  // answer that it failed
	Hang                    // take the connection, and never answer
	Away                    // not be there
)

// Received is what a consumer got.
type Received struct {
	ID          string
	Body        []byte
	Traceparent string
	Redriven    bool
}

// Consumer is a sink and what is at its other end.
type Consumer struct {
	Sink router.Sink
	// Received returns what arrived so far, in order.
	Received func() []Received
	// Behave changes the consumer, and returns when it has changed; false if
	// it can't behave so. It accepts to begin with.
	Behave func(Behaviour) bool
}

// Test runs the suite. start makes a fresh consumer, which ends with the test
// that it is given.
func Test(t *testing.T, start func(t *testing.T) Consumer) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Consumer)
	}{
		{"delivers all of a trigger", delivers},
		{"marks what is redriven", marksRedriven},
		{"leaves the body alone", leavesBodyAlone},
		{"tells a failure after one attempt", tellsFailure},
		{"gives up at the deadline", givesUpAtDeadline},
		{"gives up when cancelled", givesUpWhenCancelled},
		{"sends nothing for an ended context", sendsNothingWhenEnded},
		{"serves many at once", servesMany},
		{"fails while the consumer is away, and recovers", recovers},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, start(t)) })
	}
}

func trigger(n int) router.Trigger {
	return router.Trigger{
		ID:          fmt.Sprintf("SINKTEST%d", n),
		Sequence:    fmt.Sprintf("%026d", n),
		Device:      "van.7",
		Fence:       "depot 7",
		Kind:        geofence.Exit,
		At:          1_700_000_000_000,
		Body:        fmt.Appendf(nil, "{\"id\":\"SINKTEST%d\",\"text\":\"\u00fc\\n \"}", n),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// arrived waits until n deliveries have arrived and returns them.
func arrived(t *testing.T, c Consumer, n int) []Received {
	t.Helper()
	ctx := within(t, patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		got := c.Received()
		if len(got) >= n {
			return got
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d of %d deliveries arrived within %v", len(got), n, patience)
		}
	}
}

func delivers(t *testing.T, c Consumer) {
	tr := trigger(1)
	if err := c.Sink.Deliver(within(t, patience), tr); err != nil {
		t.Fatal(err)
	}
	got := arrived(t, c, 1)
	if len(got) != 1 {
		t.Fatalf("%d deliveries of one trigger", len(got))
	}
	if got[0].ID != tr.ID || got[0].Traceparent != tr.Traceparent || got[0].Redriven {
		t.Errorf("id %q traceparent %q redriven %v, want %q %q false",
			got[0].ID, got[0].Traceparent, got[0].Redriven, tr.ID, tr.Traceparent)
	}
	if !bytes.Equal(got[0].Body, tr.Body) {
		t.Errorf("body %q, want %q", got[0].Body, tr.Body)
	}
}

func marksRedriven(t *testing.T, c Consumer) {
	tr := trigger(1)
	tr.Redriven, tr.Traceparent = true, ""
	if err := c.Sink.Deliver(within(t, patience), tr); err != nil {
		t.Fatal(err)
	}
	if got := arrived(t, c, 1)[0]; !got.Redriven || got.ID != tr.ID || got.Traceparent != "" {
		t.Errorf("redriven %v id %q traceparent %q", got.Redriven, got.ID, got.Traceparent)
	}
}

// A body belongs to several consumers at once: the race detector sees who
// writes to it.
func leavesBodyAlone(t *testing.T, c Consumer) {
	tr := trigger(1)
	before := bytes.Clone(tr.Body)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			own := tr
			own.ID = fmt.Sprintf("SHARED%d", n)
			if err := c.Sink.Deliver(within(t, patience), own); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(tr.Body, before) {
		t.Errorf("the body is now %q", tr.Body)
	}
}

func tellsFailure(t *testing.T, c Consumer) {
	if !c.Behave(Refuse) {
		t.Skip("this consumer can't refuse")
	}
	before := len(c.Received())
	if err := c.Sink.Deliver(within(t, patience), trigger(1)); err == nil {
		t.Error("a refusal passed for a delivery")
	}
	if n := len(c.Received()) - before; n > 1 {
		t.Errorf("%d attempts in one call", n)
	}
	c.Behave(Accept)
	if err := c.Sink.Deliver(within(t, patience), trigger(2)); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
}

func givesUpAtDeadline(t *testing.T, c Consumer) {
	if !c.Behave(Hang) {
		t.Skip("this consumer can't hang")
	}
	const limit = 200 * time.Millisecond
	begin := time.Now()
	err := c.Sink.Deliver(within(t, limit), trigger(1))
	if took := time.Since(begin); took < limit || took > patience/2 {
		t.Errorf("took %v of %v", took, limit)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want one that is context.DeadlineExceeded", err)
	}
	c.Behave(Accept)
	if err := c.Sink.Deliver(within(t, patience), trigger(2)); err != nil {
		t.Errorf("after the consumer hung: %v", err)
	}
}

func givesUpWhenCancelled(t *testing.T, c Consumer) {
	if !c.Behave(Hang) {
		t.Skip("this consumer can't hang")
	}
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, cancel)
	defer timer.Stop()
	begin := time.Now()
	err := c.Sink.Deliver(ctx, trigger(1))
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("took %v", took)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want one that is context.Canceled", err)
	}
	c.Behave(Accept)
}

func sendsNothingWhenEnded(t *testing.T, c Consumer) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Sink.Deliver(ctx, trigger(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want one that is context.Canceled", err)
	}
	// What is sent next comes after whatever the ended one might have sent.
	if err := c.Sink.Deliver(within(t, patience), trigger(2)); err != nil {
		t.Fatal(err)
	}
	if got := arrived(t, c, 1); got[0].ID != trigger(2).ID {
		t.Errorf("%s arrived", got[0].ID)
	}
}

func servesMany(t *testing.T, c Consumer) {
	const workers, each = 16, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range each {
				if err := c.Sink.Deliver(within(t, patience), trigger(w*each+n)); err != nil {
					t.Errorf("worker %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	seen := map[string]int{}
	for _, r := range arrived(t, c, workers*each) {
		seen[r.ID]++
	}
	for n := range workers * each {
		if id := trigger(n).ID; seen[id] != 1 {
			t.Errorf("%s arrived %d times", id, seen[id])
		}
	}
}

func recovers(t *testing.T, c Consumer) {
	if err := c.Sink.Deliver(within(t, patience), trigger(1)); err != nil {
		t.Fatal(err)
	}
	if !c.Behave(Away) {
		t.Skip("this consumer can't be away")
	}
	begin := time.Now()
	err := c.Sink.Deliver(within(t, patience), trigger(2))
	if err == nil {
		t.Error("delivered to a consumer that is away")
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("noticed only after %v", took)
	}
	if d, ok := errors.AsType[*router.DeliveryError](err); ok && d.Cause != router.Failed {
		t.Errorf("cause %d, want Failed", d.Cause)
	}
	c.Behave(Accept)
	back := within(t, patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.Sink.Deliver(within(t, time.Second), trigger(3))
		if err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-back.Done():
			t.Fatalf("not recovered within %v: %v", patience, err)
		}
	}
	for _, r := range c.Received() {
		if r.ID == trigger(2).ID {
			t.Error("the failed delivery arrived behind our back")
		}
	}
}

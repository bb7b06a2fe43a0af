package jetqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router/sinktest"
)

// relayed is a queue behind a connection that can be held and cut.
func relayed(t *testing.T, timeout time.Duration) (*natstest.Server, *sinktest.Relay, *jetqueue.Queue) {
	t.Helper()
	s := natstest.Start(t)
	relay := sinktest.NewRelay(t, strings.TrimPrefix(s.URL, "nats://"))
	nc, err := nats.Connect("nats://"+relay.Addr, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return s, relay, open(t, nc, func(c *jetqueue.Config) { c.Timeout = timeout })
}

// A server that hangs with the connection open: every step says in time that
// it doesn't know, the park is not answered a second time by the late
// acknowledgement, and repeating it is a duplicate.
func TestHungServerIsNotKnown(t *testing.T) {
	t.Parallel()
	_, relay, q := relayed(t, time.Second)
	seq := mustPark(t, q, trigger("a", 1))
	relay.Hold()
	ch := park(q, trigger("a", 2), fallback.ReasonOpen)
	a := await(t, ch)
	if a.err == nil || errors.Is(a.err, fallback.ErrFull) || !strings.Contains(a.err.Error(), "may have been stored") {
		t.Errorf("park: %v", a.err)
	}
	if _, ok, err := q.Head(t.Context(), slotOf(trigger("a", 1)), 0); ok || err == nil || !strings.Contains(err.Error(), "TRIPLINE_FALLBACK_dispatch") {
		t.Errorf("head: %v, %v", ok, err)
	}
	if err := q.Delete(t.Context(), seq); err == nil {
		t.Error("delete was confirmed")
	}
	if _, err := q.Table(t.Context(), 3); err == nil {
		t.Error("table was known")
	}
	if err := q.Bury(t.Context(), letter(trigger("a", 3))); err == nil {
		t.Error("bury was confirmed")
	}
	relay.Release()
	// All of it was applied late: the steps are safe to repeat.
	if again := await(t, park(q, trigger("a", 2), fallback.ReasonOpen)); !errors.Is(again.err, fallback.ErrDuplicate) {
		t.Errorf("the repeated park: %+v", again)
	}
	if err := q.Delete(t.Context(), seq); err != nil {
		t.Errorf("the repeated delete: %v", err)
	}
	if err := q.Bury(t.Context(), letter(trigger("a", 3))); err != nil {
		t.Errorf("the repeated bury: %v", err)
	}
	if n := len(dead(t, q, fallback.Filter{})); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
	if table, err := q.Table(t.Context(), 3); err != nil || table[slotOf(trigger("a", 1))] != 1 {
		t.Errorf("table %v, %v", table, err)
	}
	select {
	case a := <-ch:
		t.Errorf("the late acknowledgement answered again: %+v", a)
	default:
	}
}

// R6: the broker goes away, again and again, in the middle of a divert. Each
// park is answered once; whoever repeats what isn't known, as the outlet does,
// ends with every trigger stored once and in order.
func TestR6_BrokerAwayDuringADivert(t *testing.T) {
	t.Parallel()
	_, relay, q := relayed(t, time.Second)
	const slots, each = 20, 60
	var parked atomic.Int64
	var wg sync.WaitGroup
	for s := range slots {
		wg.Go(func() {
			for n := range each {
				tr := trigger("a", n)
				tr.ID, tr.Slot = fmt.Sprintf("s%d-%d", s, n), s
				for {
					a := await(t, park(q, tr, fallback.ReasonOpen))
					if a.err == nil || errors.Is(a.err, fallback.ErrDuplicate) {
						break
					}
				}
				parked.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for cuts := int64(1); cuts < 6; cuts++ {
		eventually(t, "parks go on", func() bool { return parked.Load() > cuts*slots*each/8 })
		relay.Cut()
	}
	<-done
	for s := range slots {
		slot := fallback.Slot{Partition: 3, Index: s}
		after := uint64(0)
		for n := range each {
			it, ok, err := q.Head(t.Context(), slot, after)
			if want := fmt.Sprintf("s%d-%d", s, n); err != nil || !ok || it.Trigger.ID != want {
				t.Fatalf("slot %d: %q, %v, %v, want %s", s, it.Trigger.ID, ok, err, want)
			}
			after = it.Seq
		}
		if _, ok, err := q.Head(t.Context(), slot, after); ok || err != nil {
			t.Errorf("slot %d goes on after its last: %v, %v", s, ok, err)
		}
	}
}

// A stream that was deleted under the queue is an error with its remedy, and
// not an empty slot.
func TestDeletedStreamIsNoEmptySlot(t *testing.T) {
	s := natstest.Start(t)
	q := open(t, s.Conn(t), func(c *jetqueue.Config) { c.Timeout = patience })
	mustPark(t, q, trigger("a", 1))
	if err := jetqueue.RemoveOrphan(t.Context(), s.Conn(t), "tripline", "dispatch"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := q.Head(t.Context(), slotOf(trigger("a", 1)), 0); ok || err == nil || !strings.Contains(err.Error(), "restart of Tripline makes it anew") {
		t.Errorf("head: %v, %v", ok, err)
	}
	if a := await(t, park(q, trigger("a", 2), fallback.ReasonOpen)); a.err == nil || !strings.Contains(a.err.Error(), "restart of Tripline makes it anew") {
		t.Errorf("park: %v", a.err)
	}
	if _, err := q.Table(t.Context(), 3); err == nil {
		t.Error("table was known")
	}
}

// The caller's own deadline is kept, and is told from the server's.
func TestContextOfTheCaller(t *testing.T) {
	_, relay, q := relayed(t, patience)
	relay.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, _, err := q.Head(ctx, fallback.Slot{}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("head: %v", err)
	}
	if err := q.Bury(ctx, letter(trigger("a", 1))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("bury: %v", err)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("took %v", took)
	}
}

// Waiting for a server that is away costs no processor time.
func TestOutageCostsNoProcessor(t *testing.T) {
	s, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.Timeout = patience })
	s.Stop()
	eventually(t, "the client notices", func() bool { return !nc.IsConnected() })
	for n := range 50 {
		park(q, trigger(fmt.Sprint("d", n), n), fallback.ReasonOpen)
	}
	const watched = 500 * time.Millisecond
	before := processor(t)
	<-time.After(watched)
	if used := processor(t) - before; used > watched/4 {
		t.Errorf("%v of processor time in %v", used, watched)
	}
}

// processor is the time that this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Skip(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

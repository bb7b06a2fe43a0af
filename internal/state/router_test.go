package state_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/internal/state"
	"github.com/tripline/tripline/router"
)

// log is a source that hands out some messages, and then what comes.
type log struct {
	messages []router.Message
	more     chan router.Message
}

func newLog(messages ...router.Message) log { return log{messages, make(chan router.Message)} }

func (l log) Read(ctx context.Context, _ int, from uint64, out chan<- *router.Batch) error {
	for _, m := range l.messages {
		if m.Seq >= from {
			l.send(ctx, m, out)
		}
	}
	for {
		select {
		case m := <-l.more:
			l.send(ctx, m, out)
		case <-ctx.Done():
			return nil
		}
	}
}

func (log) send(ctx context.Context, m router.Message, out chan<- *router.Batch) {
	select {
	case out <- &router.Batch{Messages: []router.Message{m}, Read: time.Now()}:
	case <-ctx.Done():
	}
}

func (log) Tick(context.Context, int, string) error { return nil }
func (log) Answer(string, router.Answer)            {}

// inbox is an outlet that settles at once.
type inbox struct {
	mu  sync.Mutex
	got []string
}

func (o *inbox) Offer(_ context.Context, t router.Trigger, settled func()) {
	o.mu.Lock()
	o.got = append(o.got, t.Kind.String())
	o.mu.Unlock()
	settled()
}

func (o *inbox) kinds() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.got)
}

func fix(seq uint64, lon float64) router.Message {
	ts := 1_700_000_000_000 + int64(seq)*1000
	return router.Message{Seq: seq, Stored: ts, Fix: geofence.Fix{Device: "fleet.van", Lat: 39.9, Lon: lon, TS: ts, Stored: ts, Seq: seq}}
}

// partitionOver runs a partition over the real store, and returns when all
// that the log holds is durable.
func partitionOver(t *testing.T, s *state.Store, l log, ix *geofence.Index, box *inbox) (<-chan error, context.CancelFunc) {
	t.Helper()
	list := new(atomic.Pointer[[]router.Consumer])
	list.Store(&[]router.Consumer{{Name: "box", Outlet: box}})
	p := router.NewPartition(router.PartitionConfig{
		Namespace: "acme", Source: l, Store: s, Versions: s.Versions(), Fences: ix,
		Consumers: list, ProgressEvery: 10 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	deadline := time.After(20 * time.Second)
	for p.Status().Committed <= l.messages[len(l.messages)-1].Seq {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("no progress: %+v", p.Status())
		}
	}
	return done, cancel
}

// G6, with the real store and a restart of its server.
func TestG6_PartitionGoesOnFromTheStream(t *testing.T) {
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	s := open(t, js, config(1))
	ix, err := geofence.NewIndex(put(t, s, circle(t, "a", 500))...)
	if err != nil {
		t.Fatal(err)
	}
	box := &inbox{}
	done, cancel := partitionOver(t, s, newLog(fix(3, 116.5), fix(5, 116.4)), ix, box)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	srv.Restart(t)

	js = srv.JetStream(t)
	s = open(t, js, config(1))
	l := newLog(fix(3, 116.5), fix(5, 116.4), fix(7, 116.4001), fix(8, 116.5))
	done, cancel = partitionOver(t, s, l, ix, box)
	defer cancel()
	if got, want := box.kinds(), []string{"enter", "exit"}; !slices.Equal(got, want) {
		t.Errorf("transitions %q, want %q", got, want)
	}

	// Somebody else takes the partition over: the first owner stops at its
	// next commit.
	other := open(t, js, config(1))
	claim(t, other, 0)
	l.more <- fix(9, 116.4)
	select {
	case err := <-done:
		if !errors.Is(err, router.ErrFenced) {
			t.Errorf("the first owner ended with %v, want ErrFenced", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the first owner goes on")
	}
}

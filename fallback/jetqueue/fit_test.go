package jetqueue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

// A consumer more means less room for each, and the server reserves what a
// stream may take: without Fit there is no room for the new one.
func TestFitMakesRoomAndLosesNothing(t *testing.T) {
	nats := natstest.Start(t, func(o *server.Options) { o.JetStreamMaxStore = 12 << 20 })
	nc := nats.Conn(t)
	open := func(consumer string, bound int64) (*jetqueue.Queue, error) {
		return jetqueue.Open(t.Context(), nc, jetqueue.Config{Consumer: consumer, MaxBytes: bound, DeadMaxBytes: 1 << 20})
	}
	old, err := open("old", 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	const parked = 40
	for i := range parked {
		answered := make(chan error, 1)
		old.Park(router.Trigger{ID: strings.Repeat("x", i+1), Device: "van", Body: make([]byte, 64<<10)}, fallback.ReasonOpen,
			func(_ uint64, err error) { answered <- err })
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open("new", 5<<20); err == nil || !strings.Contains(err.Error(), "fallback.max_bytes") {
		t.Fatalf("a stream beyond the store: %v, want an error that names the key", err)
	}

	fit := func(want map[string]int64) {
		t.Helper()
		if err := jetqueue.Fit(t.Context(), nc, jetqueue.DefaultNamespace, want); err != nil {
			t.Fatal(err)
		}
	}
	fit(map[string]int64{"old": 5 << 20, "new": 5 << 20})
	added, err := open("new", 5<<20)
	if err != nil {
		t.Fatalf("after Fit: %v", err)
	}
	fit(map[string]int64{"new": 5 << 20}) // now old is an orphan, and holds about 2.5 MiB
	if usage := count(t.Context(), t, old); usage != parked {
		t.Errorf("%d items are left of %d", usage, parked)
	}
	if err := added.Close(); err != nil {
		t.Error(err)
	}
	if added, err = open("new", 7<<20); err != nil {
		t.Fatalf("an orphan still keeps more than it needs: %v", err)
	}
	for _, q := range []*jetqueue.Queue{old, added} {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}

func count(ctx context.Context, t *testing.T, q *jetqueue.Queue) int {
	t.Helper()
	n := 0
	for _, err := range q.Items(ctx, fallback.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

package jetqueue_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func TestMain(m *testing.M) {
	// Those that run side by side wait for servers that are away.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// open opens a queue of consumer "dispatch" that is closed with the test.
func open(t testing.TB, nc *nats.Conn, change ...func(*jetqueue.Config)) *jetqueue.Queue {
	t.Helper()
	cfg := jetqueue.Config{Consumer: "dispatch", MaxBytes: 64 << 20, DeadMaxBytes: 1 << 20}
	for _, c := range change {
		c(&cfg)
	}
	q, err := jetqueue.Open(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// trigger makes a trigger whose every field is set. n tells it from others.
func trigger(device string, n int) router.Trigger {
	return router.Trigger{
		ID:          fmt.Sprintf("%s-%d", device, n),
		Sequence:    fmt.Sprintf("%026d", n),
		Device:      device,
		Fence:       "depot \"7\"\r\nümlaut",
		Kind:        geofence.Dwell,
		At:          1_700_000_000_000 + int64(n),
		Partition:   3,
		Slot:        router.SlotOf(device),
		Priority:    router.High,
		Body:        fmt.Appendf(nil, `{"n":%d}`, n),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func slotOf(t router.Trigger) fallback.Slot {
	return fallback.Slot{Partition: t.Partition, Index: t.Slot}
}

// answer is what a park came to.
type answer struct {
	seq uint64
	err error
}

// park parks and returns where the answer will come.
func park(q fallback.Queue, tr router.Trigger, reason fallback.Reason) <-chan answer {
	ch := make(chan answer, 2) // room for a second one, which would be an error
	q.Park(tr, reason, func(seq uint64, err error) { ch <- answer{seq, err} })
	return ch
}

// await waits for an answer.
func await(t testing.TB, ch <-chan answer) answer {
	t.Helper()
	select {
	case a := <-ch:
		return a
	case <-time.After(patience):
		t.Fatalf("park not answered within %v", patience)
		panic("unreachable")
	}
}

// mustPark parks, and waits until it is durable.
func mustPark(t testing.TB, q fallback.Queue, tr router.Trigger) uint64 {
	t.Helper()
	a := await(t, park(q, tr, fallback.ReasonOpen))
	if a.err != nil {
		t.Fatalf("park %s: %v", tr.ID, a.err)
	}
	return a.seq
}

// eventually waits for a condition that the server brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

func startServer(t testing.TB, opts ...natstest.Option) (*natstest.Server, *nats.Conn) {
	t.Helper()
	s := natstest.Start(t, opts...)
	return s, s.Conn(t)
}

// roomy gives a queue room for a benchmark.
func roomy(c *jetqueue.Config) { c.MaxBytes = 4 << 30 }

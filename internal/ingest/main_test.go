package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

const namespace = "tripline"

func patterns(t testing.TB) *ingest.Patterns {
	t.Helper()
	p, err := ingest.ParsePatterns(namespace, []string{"location.*", "owntracks.*.*"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told collects what a source tells through its hooks.
type told struct {
	mu      sync.Mutex
	refused map[ingest.Reason]int
	ignored int
	lost    uint64
	dropped int
	rebuilt []error
}

func (w *told) hooks() ingest.Hooks {
	w.refused = map[ingest.Reason]int{}
	return ingest.Hooks{
		Refused: func(r ingest.Reason) { w.mu.Lock(); defer w.mu.Unlock(); w.refused[r]++ },
		Ignored: func() { w.mu.Lock(); defer w.mu.Unlock(); w.ignored++ },
		Lost:    func(_ int, n uint64) { w.mu.Lock(); defer w.mu.Unlock(); w.lost += n },
		Dropped: func(n int) { w.mu.Lock(); defer w.mu.Unlock(); w.dropped += n },
		Rebuilt: func(_ int, err error) { w.mu.Lock(); defer w.mu.Unlock(); w.rebuilt = append(w.rebuilt, err) },
	}
}

func (w *told) get(f func(*told) int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w)
}

// durable is a server with the location stream, and a source on it.
type durable struct {
	*natstest.Server
	source *ingest.Durable
	js     jetstream.JetStream
	shared bool
	told   told
}

// eachWay runs a test with a consumer for each partition, and with one for all.
func eachWay(t *testing.T, f func(t *testing.T, shared bool)) {
	t.Run("each", func(t *testing.T) { f(t, false) })
	t.Run("shared", func(t *testing.T) { f(t, true) })
}

func newDurable(t testing.TB, partitions int, shared ...bool) *durable {
	t.Helper()
	d := &durable{Server: natstest.Start(t), shared: len(shared) > 0 && shared[0]}
	d.js = d.JetStream(t)
	setUp(t, d.js, partitions)
	d.source = d.open(t, partitions)
	return d
}

func (d *durable) open(t testing.TB, partitions int) *ingest.Durable {
	t.Helper()
	source, err := ingest.NewDurable(ingest.Config{
		Conn: d.Conn(t), Patterns: patterns(t), Partitions: partitions, Shared: d.shared, Hooks: d.told.hooks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func setUp(t testing.TB, js jetstream.JetStream, partitions int) {
	t.Helper()
	err := ingest.SetUpStream(t.Context(), js, ingest.StreamConfig{
		Patterns: patterns(t), Partitions: partitions, MaxBytes: 256 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (d *durable) store(t testing.TB, subject, payload string) uint64 {
	t.Helper()
	ack, err := d.js.Publish(t.Context(), subject, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// reading is a Read in the background.
type reading struct {
	out  chan *router.Batch
	stop context.CancelFunc
	done chan error
	left []router.Message // read and not yet asked for
}

func read(t testing.TB, source router.Source, partition int, from uint64) *reading {
	t.Helper()
	r := start(source, partition, from, 0)
	t.Cleanup(func() {
		r.stop()
		if err := <-r.done; err != nil {
			t.Errorf("Read of partition %d: %v", partition, err)
		}
	})
	return r
}

// start is read for a test that stops and waits by itself. So many batches may
// wait in between.
func start(source router.Source, partition int, from uint64, room int) *reading {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reading{out: make(chan *router.Batch, room), stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- source.Read(ctx, partition, from, r.out) }()
	return r
}

// next returns the next message, with its Props copied out of the batch.
func (r *reading) next(t testing.TB) router.Message {
	t.Helper()
	for len(r.left) == 0 {
		select {
		case batch := <-r.out:
			for _, m := range batch.Messages {
				m.Fix.Props = append([]byte(nil), m.Fix.Props...)
				r.left = append(r.left, m)
			}
			batch.Release()
		case <-time.After(patience):
			t.Fatal("no message came")
		}
	}
	m := r.left[0]
	r.left = r.left[1:]
	return m
}

func location(i int) string {
	return fmt.Sprintf(`{"lat":%d,"lon":%d,"ts":%d}`, i%90, i%180, 1_700_000_000_000+i)
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// listen subscribes and makes sure that the server knows.
func listen(t testing.TB, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/router"
)

// Durable reads the locations from the stream that captures them. See
// [SetUpStream] for the stream.
type Durable struct {
	intake
	js     jetstream.JetStream
	stream string
	ticks  []string // by partition: a tick subject that hashes to it
	pull   pullSettings
	shared *shared // nil if each partition is read for itself
	alone  func() bool
}

// NewDurable returns a source that reads the stream of cfg's namespace.
func NewDurable(cfg Config) (*Durable, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	d := &Durable{
		intake: newIntake(cfg),
		stream: StreamName(cfg.Patterns.namespace),
		ticks:  tickSubjects(cfg.Patterns.namespace, cfg.Partitions),
		pull:   defaultPull(cfg.Conn.MaxPayload()),
		alone:  cfg.Alone,
	}
	if cfg.Shared {
		d.shared = newShared(d, cfg.Partitions)
	}
	var err error
	d.js, err = jetstream.New(cfg.Conn,
		jetstream.WithPublishAsyncMaxPending(maxSubmits),
		jetstream.WithPublishAsyncTimeout(submitTimeout),
		jetstream.WithPublishAsyncErrHandler(d.submitFailed))
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	return d, nil
}

// tickSubjects finds for each partition the first <namespace>.tick.<k> whose
// hash is the partition's.
func tickSubjects(namespace string, partitions int) []string {
	subjects := make([]string, partitions)
	for k, missing := 0, partitions; missing > 0; k++ {
		subject := namespace + ".tick." + strconv.Itoa(k)
		if p := router.PartitionOf(subject, partitions); subjects[p] == "" {
			subjects[p] = subject
			missing--
		}
	}
	return subjects
}

// Tick stores a tick for the partition. It returns when the stream has
// confirmed it.
func (d *Durable) Tick(ctx context.Context, partition int, nonce string) error {
	if _, err := d.js.Publish(ctx, d.ticks[partition], []byte(nonce)); err != nil {
		return fmt.Errorf("storing a tick of partition %d: %w", partition, err)
	}
	return nil
}

// Read implements [router.Source]. It mends its own reader: a consumer that
// was deleted or fell silent, a server that restarted, a leader that moved.
// It gives up when its connection has been closed, and when the stream gives
// out positions again that have been read.
func (d *Durable) Read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	if d.shared != nil && (d.alone == nil || !d.alone()) {
		return d.shared.read(ctx, partition, from, out)
	}
	return d.readAlone(ctx, partition, from, out)
}

// Separate has every partition that is read together with others go on by
// itself, from where it is.
func (d *Durable) Separate() {
	if d.shared != nil {
		d.shared.separate()
	}
}

// readAlone reads a partition through a consumer of its own.
func (d *Durable) readAlone(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	r := &reader{track: newTrack(d, partition, from), out: out}
	err := d.keep(ctx, func(changed <-chan nats.Status) (bool, error) {
		before := r.next
		err := r.session(ctx, changed)
		return r.next > before, err
	}, func(cause error) { d.hooks.rebuilt(partition, cause) })
	if err != nil {
		return fmt.Errorf("reading partition %d: %w", partition, err)
	}
	return nil
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// keep runs one session after the other until ctx ends (nil) or nothing can be
// mended. A session says whether it got anywhere, and why it ended.
func (d *Durable) keep(ctx context.Context, session func(changed <-chan nats.Status) (bool, error), rebuilt func(error)) error {
	changed := d.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer d.nc.RemoveStatusListener(changed)
	wait := firstRetry
	for {
		for len(changed) > 0 { // a session is of the newest connection
			<-changed
		}
		progressed, err := session(changed)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRewound):
			return err
		case d.nc.IsClosed():
			return nats.ErrConnectionClosed
		case errors.Is(err, errJoined):
			continue
		}
		rebuilt(err)
		if errors.Is(err, errReconnected) {
			continue
		}
		if progressed {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(wait + rand.N(wait/4)):
		}
		wait = min(2*wait, lastRetry)
	}
}

// splitStored splits `loc.<partition>.<subject>`; -1 for what is not stored so.
func splitStored(stored string) (partition int, subject string) {
	rest, ok := strings.CutPrefix(stored, "loc.")
	if !ok {
		return -1, stored
	}
	token, subject, _ := strings.Cut(rest, ".")
	partition, err := strconv.Atoi(token)
	if err != nil {
		return -1, stored
	}
	return partition, subject
}

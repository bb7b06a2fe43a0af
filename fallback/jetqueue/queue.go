package jetqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// Queue is one consumer's queue. It implements [fallback.Queue] and
// [fallback.Inspector]; all methods may be called at once.
type Queue struct {
	cfg    Config // with defaults
	nc     *nats.Conn
	parked stream
	dead   stream
	pub    *publisher
	usage  usage

	stop context.CancelFunc
	wg   sync.WaitGroup

	closeOnce sync.Once
	redrives  redrives
}

var (
	_ fallback.Queue     = (*Queue)(nil)
	_ fallback.Inspector = (*Queue)(nil)
)

// stream is one stream and the beginning of this consumer's subjects in it.
type stream struct{ name, prefix string }

// subject is where a slot's messages are.
func (s stream) subject(slot fallback.Slot) string { return s.prefix + slotTokens(slot) }

// Open makes the consumer's streams, or takes over the ones that exist with
// all that is in them, and returns the queue. The connection stays the
// caller's; it should reconnect for ever. ctx is for the opening alone; the
// queue lives until Close.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fallback queue: %w", err)
	}
	cfg = cfg.withDefaults()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("fallback queue of %s: %w", cfg.Consumer, err)
	}
	state, err := ensure(ctx, js, cfg, cfg.parkedStream(), "consumers."+cfg.Consumer+".fallback.max_bytes")
	if err != nil {
		return nil, err
	}
	if _, err := ensure(ctx, js, cfg, cfg.deadStream(), "the dead letters' share of nats.max_store"); err != nil {
		return nil, err
	}
	q := &Queue{
		cfg:    cfg,
		nc:     nc,
		parked: stream{StreamName(cfg.Namespace, cfg.Consumer), parkedSubject(cfg.Namespace, cfg.Consumer)},
		dead:   stream{DeadStreamName(cfg.Namespace), deadSubject(cfg.Namespace, cfg.Consumer)},
	}
	q.pub, err = newPublisher(nc, cfg.InFlight, cfg.Timeout)
	if err != nil {
		return nil, fmt.Errorf("fallback queue of %s: %w", cfg.Consumer, err)
	}
	q.usage.init(state, uint64(cfg.MaxBytes))
	life, stop := context.WithCancel(context.Background())
	q.stop = stop
	q.wg.Go(func() { q.pub.run(life) })
	q.wg.Go(func() { q.watchUsage(life) })
	return q, nil
}

// Close ends the queue: parks without an answer get ErrClosed, though they may
// have been stored. What is stored stays.
func (q *Queue) Close() error {
	q.closeOnce.Do(func() {
		q.pub.close()
		q.stop()
	})
	q.wg.Wait()
	return nil
}

// Park implements [fallback.Queue]. It doesn't wait for the server, and done
// is never called before it returns. While the connection is away, parks wait
// for it as long as Config.Timeout.
func (q *Queue) Park(t router.Trigger, reason fallback.Reason, done func(seq uint64, err error)) {
	slot := fallback.Slot{Partition: t.Partition, Index: t.Slot}
	msg, err := parkMsg(q.parked.subject(slot), t, reason)
	if err != nil {
		q.pub.refuse(done, fmt.Errorf("parking trigger %s: %w", t.ID, err))
		return
	}
	msg.Header.Set(nats.MsgIdHdr, t.ID)
	if t.Redriven {
		msg.Header.Set(nats.MsgIdHdr, q.redrives.msgID(t.ID))
	}
	size := sizeOf(msg)
	q.pub.publish(msg, func(seq uint64, err error) {
		if err == nil || errors.Is(err, fallback.ErrDuplicate) {
			if t.Redriven {
				q.redrives.stored(t.ID)
			}
			if err == nil {
				q.usage.add(1, int64(size))
			}
		} else {
			err = q.explain(q.parked.name, "park a trigger", err)
		}
		done(seq, err)
	})
}

// Delete implements [fallback.Queue].
func (q *Queue) Delete(ctx context.Context, seq uint64) error {
	removed, err := q.remove(ctx, q.parked.name, seq)
	if err != nil {
		return q.explain(q.parked.name, "delete a delivered trigger", err)
	}
	if removed {
		q.usage.add(-1, 0)
	}
	return nil
}

package jetqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// Bury implements [fallback.Queue].
func (q *Queue) Bury(ctx context.Context, d fallback.DeadLetter) error {
	const doing = "store a dead letter"
	slot := fallback.Slot{Partition: d.Trigger.Partition, Index: d.Trigger.Slot}
	// The time of death is part of the id for deduplication: a trigger may die
	// again after a redrive, and a repeated Bury of one death is one letter.
	died := d.Died
	if d.Died.IsZero() {
		d.Died = time.Now()
	}
	msg, err := deadMsg(q.dead.subject(slot), d)
	if err != nil {
		return q.explain(q.dead.name, doing, err)
	}
	if !died.IsZero() {
		msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s.%s.%d", q.cfg.Consumer, d.Trigger.ID, died.UnixMilli()))
	}
	answer := make(chan error, 1)
	q.pub.publish(msg, func(_ uint64, err error) { answer <- err })
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil || errors.Is(err, fallback.ErrDuplicate) {
		return nil
	}
	return q.explain(q.dead.name, doing, err)
}

// DeleteDead implements [fallback.Inspector].
func (q *Queue) DeleteDead(ctx context.Context, seq uint64) error {
	if _, err := q.remove(ctx, q.dead.name, seq); err != nil {
		return q.explain(q.dead.name, "delete a dead letter", err)
	}
	return nil
}

// Items implements [fallback.Inspector]. Each step asks the server once, so
// what is parked or deleted meanwhile may or may not be in the listing.
func (q *Queue) Items(ctx context.Context, f fallback.Filter) iter.Seq2[fallback.Item, error] {
	return func(yield func(fallback.Item, error) bool) {
		now := time.Now()
		for m, err := range q.scan(ctx, q.parked, f) {
			var it fallback.Item
			if err == nil {
				if it, err = m.item(q.parked.prefix); err != nil {
					err = unreadable(q.parked.name, m.Seq, err)
				}
			}
			if err != nil {
				if !yield(fallback.Item{}, err) {
					return
				}
				continue
			}
			if accepts(f, it.Trigger, it.Parked, now) && !yield(it, nil) {
				return
			}
		}
	}
}

// Dead implements [fallback.Inspector].
func (q *Queue) Dead(ctx context.Context, f fallback.Filter) iter.Seq2[fallback.DeadLetter, error] {
	return func(yield func(fallback.DeadLetter, error) bool) {
		now := time.Now()
		for m, err := range q.scan(ctx, q.dead, f) {
			var d fallback.DeadLetter
			if err == nil {
				if d, err = m.dead(q.dead.prefix); err != nil {
					err = unreadable(q.dead.name, m.Seq, err)
				}
			}
			if err != nil {
				if !yield(fallback.DeadLetter{}, err) {
					return
				}
				continue
			}
			if accepts(f, d.Trigger, d.Died, now) && !yield(d, nil) {
				return
			}
		}
	}
}

// scan walks the messages of a stream that may pass the filter. An error of
// the server ends it.
func (q *Queue) scan(ctx context.Context, s stream, f fallback.Filter) iter.Seq2[*stored, error] {
	subject := s.prefix + "*.*"
	if f.Device != "" {
		// A device has one slot, in whichever partition it is.
		subject = fmt.Sprintf("%s*.%d", s.prefix, router.SlotOf(f.Device))
	}
	return func(yield func(*stored, error) bool) {
		for after := f.After; ; {
			m, err := q.get(ctx, s.name, getRequest{Seq: after + 1, Next: subject})
			if err != nil {
				yield(nil, q.explain(s.name, "list", err))
				return
			}
			if m == nil || !yield(m, nil) {
				return
			}
			after = m.Seq
		}
	}
}

// accepts applies a filter; since is when the entry was parked or died.
func accepts(f fallback.Filter, t router.Trigger, since, now time.Time) bool {
	return (f.Fence == "" || f.Fence == t.Fence) &&
		(f.Device == "" || f.Device == t.Device) &&
		(f.OlderThan <= 0 || now.Sub(since) >= f.OlderThan)
}

package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// trimEvery is how often it is looked whether there is something to trim.
	trimEvery = 5 * time.Second
	// trimPause lets publishers through between two purges of a backlog.
	trimPause = 100 * time.Millisecond
)

// Trim removes from the location stream what is older than a retention and no
// partition needs any more. One process at a time should run it: the owner of
// partition 0.
type Trim struct {
	Source    *Durable
	Retention time.Duration
	// Span is how much of the stream, in stream time, one purge takes at most;
	// 0 means 10 s.
	Span time.Duration
	// ReplayFrom returns the lowest position that any partition still has to
	// read after a restart. Nothing from there on is removed.
	ReplayFrom func(context.Context) (uint64, error)
	// Failed is told why a step failed; it is tried again. It may be nil.
	Failed func(error)
}

// Run trims until ctx ends.
func (t *Trim) Run(ctx context.Context) error {
	for {
		more, err := t.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && t.Failed != nil {
			t.Failed(err)
		}
		wait := trimEvery
		if more && err == nil {
			wait = trimPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Step removes at most a Span's worth of the stream, by sequence and without a
// filter: a filtered purge, or a large one, stalls whoever publishes. It tells
// whether there is more to do.
//
// A partition that nothing was stored for doesn't move its position, and so
// would hold all others: where that is what stands in the way, each partition
// gets a tick.
func (t *Trim) Step(ctx context.Context) (more bool, err error) {
	stream, err := t.Source.js.Stream(ctx, t.Source.stream)
	if err != nil {
		return false, fmt.Errorf("trimming %s: %w", t.Source.stream, err)
	}
	info := stream.CachedInfo()
	horizon := info.TimeStamp.Add(-t.Retention)
	if info.State.Msgs == 0 || !info.State.FirstTime.Before(horizon) {
		return false, nil
	}
	upTo := info.State.FirstTime.Add(cmp.Or(t.Span, 10*time.Second))
	if upTo.Before(horizon) {
		more = true
	} else {
		upTo = horizon
	}
	cut, err := firstSince(ctx, stream, upTo)
	if err != nil {
		return false, fmt.Errorf("trimming %s: %w", t.Source.stream, err)
	}
	needed, err := t.ReplayFrom(ctx)
	if err != nil {
		return false, fmt.Errorf("trimming %s: %w", t.Source.stream, err)
	}
	if needed < cut {
		cut, more = needed, false
		for p := range t.Source.ticks {
			if err := t.Source.Tick(ctx, p, ""); err != nil {
				return false, err
			}
		}
	}
	if cut <= info.State.FirstSeq {
		return false, nil
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(cut)); err != nil {
		return false, fmt.Errorf("trimming %s up to %d: %w", t.Source.stream, cut, err)
	}
	return more, nil
}

// firstSince finds the first sequence that was stored at or after a time, by
// bisection: stored times never fall, and a single message is cheap to get.
func firstSince(ctx context.Context, stream jetstream.Stream, at time.Time) (uint64, error) {
	state := stream.CachedInfo().State
	low, high := state.FirstSeq, state.LastSeq+1 // the answer is in low..high
	for low < high {
		middle := low + (high-low)/2
		msg, err := stream.GetMsg(ctx, middle, jetstream.WithGetMsgSubject(">"))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound): // nothing from there on
			high = middle
		case err != nil:
			return 0, fmt.Errorf("looking for the first message since %v: %w", at, err)
		case msg.Time.Before(at):
			low = msg.Sequence + 1
		default:
			high = middle
		}
	}
	return low, nil
}

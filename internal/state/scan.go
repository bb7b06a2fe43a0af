package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errScanBroken says that a scan lost messages on the way, to a reconnect for
// example. It can be repeated.
var errScanBroken = errors.New("reading the state was interrupted")

const (
	scanPull = 4096
	// scanSilence is how long a scan waits for the next message.
	scanSilence = 10 * time.Second
)

// scan calls f for the last message of every subject that fits filter, in the
// order of their sequences. A reader of its own with a single filter is the
// fastest way to read a part of a stream, and unlike direct gets it asks the
// stream's leader.
func (s *Store) scan(ctx context.Context, filter string, f func(jetstream.Msg, uint64) error) error {
	consumer, err := s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject:     filter,
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", filter, err)
	}
	info := consumer.CachedInfo()
	defer func() {
		// Its own context: the scan's may have ended. The server removes it
		// anyhow, a minute later.
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.stream.DeleteConsumer(dctx, info.Name)
	}()
	if info.NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(scanPull), jetstream.PullExpiry(scanSilence))
	if err != nil {
		return fmt.Errorf("read %s: %w", filter, err)
	}
	defer messages.Stop()
	for n := uint64(1); ; n++ {
		msg, err := nextMessage(ctx, messages)
		if err != nil {
			return fmt.Errorf("read %s: %w", filter, err)
		}
		md, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read %s: %w", filter, err)
		}
		if md.Sequence.Consumer != n {
			return fmt.Errorf("read %s: %w", filter, errScanBroken)
		}
		if err := f(msg, md.Sequence.Stream); err != nil {
			return err
		}
		if md.NumPending == 0 {
			return nil
		}
	}
}

func nextMessage(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	nextCtx, cancel := context.WithTimeout(ctx, scanSilence)
	defer cancel()
	msg, err := messages.Next(jetstream.NextContext(nextCtx))
	switch {
	case err == nil:
		return msg, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nil, errScanBroken
	}
	return nil, err
}

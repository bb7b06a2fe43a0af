package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// errScanBroken says that a scan lost messages on the way, to a reconnect for
// example.
var errScanBroken = errors.New("reading the state was interrupted")

const (
	scanPull = 4096
	// scanHeartbeat is how often the server shows that it still sends; two
	// that are missing end the scan.
	scanHeartbeat = 5 * time.Second
	// scanTries bounds how often a scan that was interrupted begins anew.
	scanTries = 3
)

// scan calls f for the last message of every subject that fits filter, in the
// order of their sequences. A reader of its own with a single filter is the
// fastest way to read a part of a stream, and unlike direct gets it asks the
// stream's leader. A scan that was interrupted begins anew: f may see messages
// twice.
func (s *Store) scan(ctx context.Context, filter string, f func(jetstream.Msg, uint64) error) error {
	for try := 1; ; try++ {
		err := s.scanOnce(ctx, filter, f)
		if err == nil || try == scanTries || !errors.Is(err, errScanBroken) {
			return err
		}
	}
}

func (s *Store) scanOnce(ctx context.Context, filter string, f func(jetstream.Msg, uint64) error) error {
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
	messages, err := consumer.Messages(jetstream.PullMaxMessages(scanPull), jetstream.PullHeartbeat(scanHeartbeat))
	if err != nil {
		return fmt.Errorf("read %s: %w", filter, err)
	}
	defer messages.Stop()
	untilDone := jetstream.NextContext(ctx)
	for n := uint64(1); ; n++ {
		msg, err := messages.Next(untilDone)
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			err = errScanBroken
		}
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

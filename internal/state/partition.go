package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/tripline/tripline/router"
)

var _ router.Store = (*Store)(nil)

// epoch is our ownership of a partition: the sequence of our last message on
// its epoch subject. As long as that is the subject's last message, we are
// the owner.
type epoch struct {
	mu  sync.Mutex // held over a claim and over a commit
	seq uint64
	// doubtful: a commit's fate is unknown. It may still arrive at the
	// server; the epoch is renewed before the next one, so that it can't be
	// stored after that.
	doubtful bool
}

// progress is the stored form of router.Progress.
type progress struct {
	Offset     uint64 `json:"offset"`
	ReplayFrom uint64 `json:"replay_from"`
	Position   uint64 `json:"position"`
	Clock      int64  `json:"clock"`
}

type owner struct {
	Owner string `json:"owner"`
}

func (s *Store) epochOf(partition int) *epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.epochs[partition]
	if e == nil {
		e = new(epoch)
		s.epochs[partition] = e
	}
	return e
}

// Claim makes this store the partition's owner and loads what was saved; see
// [router.Store].
func (s *Store) Claim(ctx context.Context, partition int) (router.Saved, error) {
	e := s.epochOf(partition)
	e.mu.Lock()
	defer e.mu.Unlock()
	body, err := json.Marshal(owner{s.owner})
	if err != nil {
		return router.Saved{}, err
	}
	ack, err := s.js.Publish(ctx, s.epochSubject(partition), body)
	if err != nil {
		return router.Saved{}, fmt.Errorf("bump the epoch: %w", err)
	}
	e.seq, e.doubtful = ack.Sequence, false
	return s.load(ctx, partition)
}

// load reads what was saved. Nobody else can commit any more, so what it
// reads in several steps fits together.
func (s *Store) load(ctx context.Context, partition int) (router.Saved, error) {
	p, err := s.progress(ctx, partition)
	if err != nil {
		return router.Saved{}, err
	}
	found, err := s.presences.load(ctx, partition)
	if err != nil {
		return router.Saved{}, err
	}
	saved := router.Saved{Offset: p.Offset, ReplayFrom: p.ReplayFrom, Clock: p.Clock, Presences: found.byDevice}
	// A removal was stored and the process ended before the message itself
	// was deleted.
	return saved, s.deleteAll(ctx, found.removed)
}

// progress reads a partition's progress; zero if there is none.
func (s *Store) progress(ctx context.Context, partition int) (progress, error) {
	var p progress
	msg, err := s.stream.GetLastMsgForSubject(ctx, s.progressSubject(partition))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("read progress of partition %d: %w", partition, err)
	}
	if err := json.Unmarshal(msg.Data, &p); err != nil {
		return p, fmt.Errorf("read progress of partition %d: %w", partition, err)
	}
	return p, nil
}

// MinReplayFrom returns the smallest replay_from of all partitions: no
// restart reads anything before it. It is 0 while some partition has not
// saved any progress.
func (s *Store) MinReplayFrom(ctx context.Context) (uint64, error) {
	lowest := uint64(math.MaxUint64)
	for partition := range s.cfg.Partitions {
		p, err := s.progress(ctx, partition)
		if err != nil {
			return 0, err
		}
		lowest = min(lowest, p.ReplayFrom)
	}
	return lowest, nil
}

// MaxPosition returns the highest position that anything saved knows of. A log
// that hands it out again would repeat what counts as judged.
func (s *Store) MaxPosition(ctx context.Context) (uint64, error) {
	highest := uint64(0)
	for partition := range s.cfg.Partitions {
		p, err := s.progress(ctx, partition)
		if err != nil {
			return 0, err
		}
		highest = max(highest, p.Position, max(p.Offset, 1)-1)
	}
	return highest, nil
}

// batchMost is how many messages the server takes in one atomic batch.
const batchMost = 1000

// Commit stores a step of a claimed partition; see [router.Store]. More
// presences than fit one batch go in several; the progress is in the last, so
// it never names what is not stored.
func (s *Store) Commit(ctx context.Context, partition int, step router.Progress) error {
	e := s.epochOf(partition)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seq == 0 {
		return fmt.Errorf("partition %d is not claimed", partition)
	}
	if e.doubtful {
		if err := s.renew(ctx, partition, e); err != nil {
			return err
		}
	}
	body, err := json.Marshal(progress{Offset: step.Offset, ReplayFrom: step.ReplayFrom, Position: step.Position, Clock: step.Clock})
	if err != nil {
		return err
	}
	prefix := s.presencePrefix(partition)
	messages := make([]*nats.Msg, 0, len(step.Presences)+1)
	for _, p := range step.Presences {
		messages = append(messages, &nats.Msg{Subject: prefix + token(p.Device), Data: p.Encoded})
	}
	messages = append(messages, &nats.Msg{Subject: s.progressSubject(partition), Data: body})

	var removed []uint64
	for len(messages) > 0 {
		batch := messages[:min(batchMost, len(messages))]
		messages = messages[len(batch):]
		last, err := s.publish(ctx, partition, e, batch)
		if err != nil {
			return err
		}
		for i, msg := range batch {
			if len(msg.Data) == 0 {
				removed = append(removed, last-uint64(len(batch)-1-i))
			}
		}
	}
	// An empty message says "removed", but its subject still holds the
	// device's id, which is personal.
	return s.deleteAll(ctx, removed)
}

// publish stores a batch whole, or not at all, and returns its last sequence.
func (s *Store) publish(ctx context.Context, partition int, e *epoch, batch []*nats.Msg) (uint64, error) {
	select {
	case s.inFlight <- struct{}{}:
		defer func() { <-s.inFlight }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for _, msg := range batch {
		msg.Header = nats.Header{}
	}
	batch[0].Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, s.epochSubject(partition))
	batch[0].Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(e.seq, 10))
	last, err := s.send(ctx, batch)
	if wrongSequence(err) {
		return 0, fmt.Errorf("commit: %w", router.ErrFenced)
	}
	if err != nil {
		e.doubtful = apiError(err) == nil // else the server has refused it
		return 0, fmt.Errorf("commit: %w", err)
	}
	return last, nil
}

// send publishes a batch and returns its last sequence. One message by itself,
// as progress often is, goes without the store on disk that the server makes
// for an atomic batch.
func (s *Store) send(ctx context.Context, batch []*nats.Msg) (uint64, error) {
	if len(batch) == 1 {
		ack, err := s.js.PublishMsg(ctx, batch[0])
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	}
	// An ack of the first message would be waited for without ctx.
	ack, err := jetstreamext.PublishMsgBatch(ctx, s.js, batch, jetstreamext.BatchFlowControl{AckFirst: false})
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// renew takes a new epoch, if the last one is still ours.
func (s *Store) renew(ctx context.Context, partition int, e *epoch) error {
	body, err := json.Marshal(owner{s.owner})
	if err != nil {
		return err
	}
	subject := s.epochSubject(partition)
	ack, err := s.js.Publish(ctx, subject, body, jetstream.WithExpectLastSequenceForSubject(e.seq, subject))
	if err == nil {
		e.seq, e.doubtful = ack.Sequence, false
		return nil
	}
	if !wrongSequence(err) {
		return fmt.Errorf("renew the epoch: %w", err)
	}
	// Somebody's is newer; perhaps our own, whose answer was lost.
	msg, err := s.stream.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	var o owner
	if err := json.Unmarshal(msg.Data, &o); err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if o.Owner != s.owner {
		return fmt.Errorf("renew the epoch: %w", router.ErrFenced)
	}
	// A renewal under way may still come in and outdate this one; then the
	// next commit fails as if fenced. So renew once more from here.
	e.seq = msg.Sequence
	ack, err = s.js.Publish(ctx, subject, body, jetstream.WithExpectLastSequenceForSubject(e.seq, subject))
	if err != nil {
		return fmt.Errorf("renew the epoch: %w", err)
	}
	e.seq, e.doubtful = ack.Sequence, false
	return nil
}

// deleteAll removes messages by sequence. One that is gone is fine.
func (s *Store) deleteAll(ctx context.Context, seqs []uint64) error {
	for _, seq := range seqs {
		err := s.stream.DeleteMsg(ctx, seq)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !s.isGone(ctx, seq) {
			return fmt.Errorf("delete a removed presence: %w", err)
		}
	}
	return nil
}

func (s *Store) isGone(ctx context.Context, seq uint64) bool {
	_, err := s.stream.GetMsg(ctx, seq)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

func (s *Store) epochSubject(partition int) string {
	return s.prefix + "epoch." + strconv.Itoa(partition)
}

func (s *Store) progressSubject(partition int) string {
	return s.prefix + "progress." + strconv.Itoa(partition)
}

// presencePrefix ends in a dot.
func (s *Store) presencePrefix(partition int) string {
	return s.prefix + "presence." + strconv.Itoa(partition) + "."
}

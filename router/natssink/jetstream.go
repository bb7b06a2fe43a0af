package natssink

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/router"
)

// JetStream delivers into a stream: its acknowledgement is the delivery. The
// trigger's id is the message's id, so within the stream's duplicate window a
// repeat is stored once, and counts as delivered.
type JetStream struct {
	base
	js jetstream.JetStream
}

// NewJetStream returns the sink. It panics on what [Config.Validate] refuses.
func NewJetStream(nc *nats.Conn, cfg Config) *JetStream {
	js, err := jetstream.New(nc)
	if err != nil { // only of options, and there are none
		panic(fmt.Sprintf("natssink: %v", err))
	}
	return &JetStream{base: newBase(nc, cfg), js: js}
}

// Deliver implements [router.Sink].
func (s *JetStream) Deliver(ctx context.Context, t router.Trigger) error {
	ctx, cancel := s.attempt(ctx)
	defer cancel()
	msg := s.message(&t)
	if err := s.ready(ctx); err != nil {
		return fail(msg.Subject, router.Failed, err)
	}
	// One attempt: the fallback queue is where it is repeated.
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if s.cfg.Stream != "" {
		opts = append(opts, jetstream.WithExpectStream(s.cfg.Stream))
	}
	before := s.nc.LastError()
	_, err := s.js.PublishMsg(ctx, msg, opts...)
	if err == nil {
		return nil
	}
	if d := s.denied(before, s.subject.text[0]); d != nil {
		return fail(msg.Subject, router.Failed, d)
	}
	return s.refused(msg.Subject, err)
}

// Codes of JetStream's errors that mean more than a failure.
const (
	codeInsufficientResources = 10023
	codeStorageExceeded       = 10047
	codeMessageTooLarge       = 10054 // for the stream's max_msg_size
	codeStoreFailed           = 10077 // most often: the stream is full
)

// refused reads what a stream answered.
func (s *JetStream) refused(subject string, err error) error {
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fail(subject, router.Failed, fmt.Errorf("no stream captures the subject: %w", err))
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return fail(subject, causeOf(err), err)
	}
	d := fail(subject, router.Failed, err)
	switch api.ErrorCode {
	case codeInsufficientResources, codeStorageExceeded, codeStoreFailed:
		d.Cause = router.Unavailable
	case codeMessageTooLarge:
		d.Cause = router.Rejected
	}
	d.Status = api.Code
	return d
}

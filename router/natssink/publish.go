package natssink

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/router"
)

// Publish delivers by a core NATS publish. A delivery is done when the server
// has answered a flush that followed it: the message has reached the server,
// which has passed it to whoever subscribes at that moment, if anybody does.
// A server that is away, hangs or denies the subject is a failure. Concurrent
// deliveries share flushes.
type Publish struct {
	base
	flush flusher
}

// NewPublish returns the sink. It panics on what [Config.Validate] refuses.
func NewPublish(nc *nats.Conn, cfg Config) *Publish {
	return &Publish{base: newBase(nc, cfg), flush: flusher{nc: nc}}
}

// Deliver implements [router.Sink].
func (s *Publish) Deliver(ctx context.Context, t router.Trigger) error {
	ctx, cancel := s.attempt(ctx)
	defer cancel()
	msg := s.message(&t)
	if err := s.ready(ctx); err != nil {
		return fail(msg.Subject, router.Failed, err)
	}
	before := s.nc.LastError()
	if err := s.nc.PublishMsg(msg); err != nil {
		return fail(msg.Subject, causeOf(err), err)
	}
	if err := s.flush.wait(ctx); err != nil {
		return fail(msg.Subject, router.Failed, err)
	}
	if err := s.denied(before, s.subject.text[0]); err != nil {
		return fail(msg.Subject, router.Failed, err)
	}
	return nil
}

// Close waits for a flush that may still be under way after deliveries were
// given up. No Deliver may begin after it.
func (s *Publish) Close() error {
	s.flush.wg.Wait()
	return nil
}

// denied finds the server's word that a subject may not be published to. It
// comes before the answer to the flush, but on the connection as a whole, and
// a later one replaces it: so any new one that names a subject which begins as
// all of the sink's do fails the delivery. At worst that is a repeat; taking it
// for delivered would be a loss.
func (b *base) denied(before error, subjects string) error {
	err := b.nc.LastError()
	if err == nil || err == before || !errors.Is(err, nats.ErrPermissionViolation) ||
		!strings.Contains(strings.ToLower(err.Error()), `publish to "`+strings.ToLower(subjects)) {
		return nil
	}
	return err
}

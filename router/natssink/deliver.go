package natssink

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/router"
)

// Headers of a message, besides Nats-Msg-Id.
const (
	headerContentType = "Content-Type"
	headerTraceparent = "traceparent"
	headerRedriven    = "Tripline-Redriven"

	contentType = "application/cloudevents+json"
)

// message makes the message of a trigger. The body is shared, not copied.
func (b *base) message(t *router.Trigger) *nats.Msg {
	h := nats.Header{
		nats.MsgIdHdr:     {t.ID},
		headerContentType: {contentType},
	}
	if t.Traceparent != "" {
		h[headerTraceparent] = []string{t.Traceparent}
	}
	if t.Redriven {
		h[headerRedriven] = []string{"true"}
	}
	return &nats.Msg{Subject: b.subject.fill(t), Header: h, Data: t.Body}
}

// attempt bounds ctx by the sink's own timeout.
func (b *base) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.cfg.Timeout > 0 {
		return context.WithTimeout(ctx, b.cfg.Timeout)
	}
	return ctx, func() {}
}

// ready fails at once while the connection is away, rather than leave a
// message in its buffer that would be sent after the attempt was given up.
func (b *base) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.nc.IsConnected() {
		return fmt.Errorf("no connection to NATS (%s)", b.nc.Status())
	}
	return nil
}

// fail makes the error of an attempt.
func fail(subject string, cause router.Cause, err error) *router.DeliveryError {
	return &router.DeliveryError{Cause: cause, Err: fmt.Errorf("publish on %s: %w", subject, err)}
}

// causeOf tells our own faults, with which nothing was sent, from the rest.
func causeOf(err error) router.Cause {
	if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject) || errors.Is(err, nats.ErrHeadersNotSupported) {
		return router.Unsent
	}
	return router.Failed
}

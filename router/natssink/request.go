package natssink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/tripline/tripline/internal/answer"
	"github.com/tripline/tripline/router"
)

// headerRetryAfter is a reply's Retry-After: whole seconds or an HTTP date.
const headerRetryAfter = "Retry-After"

// maxReason is how much of an error reply's description is kept.
const maxReason = 200

// Request delivers by a NATS request: a service's reply is the
// acknowledgement, whatever its payload.
//
// A reply with a Nats-Service-Error or Nats-Service-Error-Code header, as the
// micro package of nats.go writes them, is a refusal. A code that is an HTTP
// status means what it means of a webhook: 400, 413, 415 and 422 reject the
// trigger for good, 410 wants no more, 429 and 503 ask to wait, with a
// Retry-After header; any other error is a failure that is tried again.
// No responders is a failure too.
//
// The subject must not be one that a stream captures: the stream would answer
// first, with its own acknowledgement. [JetStream] is for those.
type Request struct{ base }

// NewRequest returns the sink. It panics on what [Config.Validate] refuses.
func NewRequest(nc *nats.Conn, cfg Config) *Request {
	return &Request{newBase(nc, cfg)}
}

// Deliver implements [router.Sink].
func (s *Request) Deliver(ctx context.Context, t router.Trigger) error {
	ctx, cancel := s.attempt(ctx)
	defer cancel()
	msg := s.message(&t)
	reply, err := s.request(ctx, msg, s.subject.text[0])
	if err != nil {
		return fail(msg.Subject, causeOf(err), err)
	}
	return s.judge(msg.Subject, reply)
}

// request asks once. subjects is how the subjects begin on which it is asked.
func (s *Request) request(ctx context.Context, msg *nats.Msg, subjects string) (*nats.Msg, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	before := s.nc.LastError()
	reply, err := s.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("nobody serves the subject: %w", err)
	case err != nil:
		if d := s.denied(before, subjects); d != nil {
			return nil, d
		}
		return nil, fmt.Errorf("no reply: %w", err)
	}
	return reply, nil
}

// judge reads the outcome out of a reply.
func (s *Request) judge(subject string, reply *nats.Msg) error {
	code := reply.Header.Get(micro.ErrorCodeHeader)
	text := reply.Header.Get(micro.ErrorHeader)
	if code == "" && text == "" {
		return nil
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
	status, err := strconv.Atoi(code)
	if err != nil || status < 100 || status > 599 {
		return fail(subject, router.Failed, fmt.Errorf("the service answered with error %q %s", code, text))
	}
	if text == "" {
		text = http.StatusText(status)
	}
	d := fail(subject, answer.Cause(status), errors.New(text))
	d.Status = status
	if answer.HasRetryAfter(d.Cause) {
		d.RetryAfter = answer.RetryAfter(reply.Header.Get(headerRetryAfter), reply.Header.Get("Date"),
			time.Now(), s.cfg.MaxRetryAfter)
	}
	return d
}

// ErrNoHealth is what Check returns when the sink has no ping subject.
var ErrNoHealth = errors.New("no ping subject is configured")

// Check asks the ping subject once. nil means that a reply without an error
// came before ctx ended. It is a hint: it says nothing of a delivery.
func (s *Request) Check(ctx context.Context) error {
	if s.cfg.Ping == "" {
		return ErrNoHealth
	}
	reply, err := s.request(ctx, &nats.Msg{Subject: s.cfg.Ping}, s.cfg.Ping)
	if err == nil {
		err = s.judge(s.cfg.Ping, reply)
	}
	if err != nil {
		return fmt.Errorf("ping %s: %w", s.cfg.Ping, err)
	}
	return nil
}

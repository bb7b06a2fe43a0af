// Package natssink delivers triggers over NATS, in one of three ways that
// differ in what a delivery promises:
//
//   - [Publish]: the server has taken the message. Nobody needs to listen, and
//     whoever does may miss it: at most once from there on.
//   - [Request]: a service has answered. Its reply is the acknowledgement, an
//     error in the reply a refusal.
//   - [JetStream]: a stream has stored the message.
//
// All send the CloudEvents body, with the trigger's id in the Nats-Msg-Id
// header, so that a stream on the other side drops repeats. Each makes one
// attempt per call.
package natssink

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// DefaultMaxRetryAfter is the longest Retry-After that is honoured.
const DefaultMaxRetryAfter = time.Hour

// Config describes one NATS consumer. Only Subject is required.
//
// The connection that a sink is given should reconnect for ever and buffer
// nothing while it is away (nats.ReconnectBufSize(-1)): the fallback queue is
// where triggers wait, and a buffer would send them a second time, late.
type Config struct {
	// Subject is where triggers go. It may hold {device}, {fence},
	// {transition}, {consumer} and {namespace}; each is filled in as one
	// token, see [Token].
	Subject string
	// Consumer and Namespace fill in their placeholders.
	Consumer, Namespace string
	// Timeout bounds one attempt. 0: only the context passed to Deliver does.
	Timeout time.Duration
	// Ping is a subject that the service behind a Request answers when it is
	// well, with any payload but no error. "" switches Check off. The other
	// sinks don't use it.
	Ping string
	// Stream is the stream that must store a JetStream message; any other is
	// refused by the server. "": whichever captures the subject.
	Stream string
	// MaxRetryAfter is the longest Retry-After of a Request's reply that is
	// honoured; a longer one is cut to it. 0: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
}

// Validate names each setting that a constructor would refuse.
func (c Config) Validate() error {
	var errs []error
	if _, err := parseTemplate(c.Subject, c.Consumer, c.Namespace); err != nil {
		errs = append(errs, err)
	}
	if c.Ping != "" {
		if err := checkSubject(c.Ping); err != nil {
			errs = append(errs, fmt.Errorf("ping %w", err))
		}
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v: must not be negative", c.Timeout))
	}
	if c.MaxRetryAfter < 0 {
		errs = append(errs, fmt.Errorf("max_retry_after %v: must not be negative", c.MaxRetryAfter))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = DefaultMaxRetryAfter
	}
	return c
}

// base is what the three sinks share. It is immutable.
type base struct {
	nc      *nats.Conn
	cfg     Config
	subject template
}

// newBase panics on what Config.Validate refuses.
func newBase(nc *nats.Conn, cfg Config) base {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Sprintf("natssink: %v", err))
	}
	t, _ := parseTemplate(cfg.Subject, cfg.Consumer, cfg.Namespace)
	return base{nc: nc, cfg: cfg.withDefaults(), subject: t}
}

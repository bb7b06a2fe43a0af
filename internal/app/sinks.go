package app

import (
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/egress"
	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/natssink"
	"github.com/tripline/tripline/router/webhook"
)

// sink is an adapter with what belongs to it.
type sink struct {
	router.Sink
	kind   string          // webhook, nats, request or jetstream
	target string          // what people call it by, without secrets
	health fallback.Health // nil if there is none
	close  io.Closer       // nil if there is nothing to close
}

// newSink builds the adapter that a consumer's configuration names.
func newSink(c config.Consumer, namespace, version string, nc *nats.Conn) (sink, error) {
	switch {
	case c.Webhook != nil:
		return newWebhook(c, version)
	case c.NATS != nil:
		cfg := natsConfig(c, namespace, c.NATS.Subject)
		if err := cfg.Validate(); err != nil {
			return sink{}, err
		}
		s := natssink.NewPublish(nc, cfg)
		return sink{Sink: s, kind: "nats", target: c.NATS.Subject, close: s}, nil
	case c.Request != nil:
		cfg := natsConfig(c, namespace, c.Request.Subject)
		cfg.Ping = c.Request.Health
		if err := cfg.Validate(); err != nil {
			return sink{}, err
		}
		s := natssink.NewRequest(nc, cfg)
		out := sink{Sink: s, kind: "request", target: c.Request.Subject}
		if cfg.Ping != "" {
			out.health = s
		}
		return out, nil
	case c.JetStream != nil:
		cfg := natsConfig(c, namespace, c.JetStream.Subject)
		if err := cfg.Validate(); err != nil {
			return sink{}, err
		}
		return sink{Sink: natssink.NewJetStream(nc, cfg), kind: "jetstream", target: c.JetStream.Subject}, nil
	}
	return sink{}, fmt.Errorf("consumer %s has no sink", c.Name)
}

func newWebhook(c config.Consumer, version string) (sink, error) {
	w := c.Webhook
	cfg := webhook.Config{
		URL:         w.URL.Reveal(),
		Secrets:     w.Secrets,
		Header:      w.Headers,
		Timeout:     c.Timeout,
		Concurrency: c.Concurrency,
		TLS:         webhook.TLS{CA: w.CA, Cert: w.Cert, Key: w.Key},
		Health:      w.Health.Reveal(),
		Version:     version,
	}
	if w.Egress == config.EgressPublic {
		cfg.Egress = egress.Public
	}
	if err := cfg.Validate(); err != nil {
		return sink{}, err
	}
	s := webhook.New(cfg)
	out := sink{Sink: s, kind: "webhook", target: w.URL.String(), close: s}
	if cfg.Health != "" {
		out.health = s
	}
	return out, nil
}

func natsConfig(c config.Consumer, namespace, subject string) natssink.Config {
	return natssink.Config{Subject: subject, Consumer: c.Name, Namespace: namespace, Timeout: c.Timeout}
}

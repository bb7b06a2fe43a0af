package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// ErrNoHealth is what Check returns when the sink has no health URL.
var ErrNoHealth = errors.New("no health URL is configured")

// probe asks a consumer's health URL.
type probe struct {
	url       *url.URL
	origin    string
	header    http.Header
	timeout   time.Duration
	transport *http.Transport
}

// newProbe gives the probe a connection of its own: the deliveries' may all
// be stuck at a consumer that is sick, and that is when health matters.
func newProbe(cfg Config, tlsConfig *tls.Config) *probe {
	u, _ := parseURL("health", cfg.Health)
	return &probe{
		url:       withoutUser(u),
		origin:    u.Scheme + "://" + u.Host,
		header:    baseHeader(cfg, u),
		timeout:   cfg.HealthTimeout,
		transport: newTransport(cfg, tlsConfig, 1),
	}
}

// Check asks the health URL once, within HealthTimeout. nil means that it
// answered 2xx, in time and to the last byte. It says nothing about whether a
// delivery would succeed: it is a hint.
func (s *Sink) Check(ctx context.Context) error {
	if s.health == nil {
		return ErrNoHealth
	}
	if err := s.health.check(ctx); err != nil {
		return s.redact.Error(fmt.Errorf("GET %s: %w", s.health.origin, err))
	}
	return nil
}

func (p *probe) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	var reached phase
	req := (&http.Request{
		Method: http.MethodGet,
		URL:    p.url,
		Host:   p.url.Host,
		Header: maps.Clone(p.header),
	}).WithContext(reached.trace(ctx))
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return inWords(ctx, err, reached.String())
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fmt.Errorf("answered %d", resp.StatusCode)
	case err != nil:
		return inWords(ctx, err, "answer not complete")
	}
	return nil
}

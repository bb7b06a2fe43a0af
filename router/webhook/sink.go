// Package webhook delivers triggers by HTTP: a POST of the CloudEvents body,
// signed as Standard Webhooks says. It makes one attempt per call, within one
// deadline, and reads out of the answer what the consumer wants:
//
//   - any 2xx is a delivery;
//   - 400, 413, 415 and 422 reject the trigger for good;
//   - 410 wants no trigger any more;
//   - 429 and 503 ask to wait, with Retry-After in seconds or as a date;
//   - everything else, redirects among it, is a failure.
//
// Redirects are not followed, proxies named by the environment are not used,
// answers are not decompressed, and at most 64 KiB of one are read.
package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tripline/tripline/internal/egress"
	"github.com/tripline/tripline/internal/secret"
	"github.com/tripline/tripline/router"
)

// contentType is that of a trigger's body.
const contentType = "application/cloudevents+json"

// Sink posts triggers to one URL. It implements [router.Sink]; all methods may
// be called at once from any goroutine.
type Sink struct {
	cfg    Config // with defaults
	url    *url.URL
	origin string      // scheme and host: all of the URL that errors show
	header http.Header // what every attempt carries; never written to
	sign   signer
	redact secret.Redactor
	now    func() time.Time

	transport *http.Transport
	health    *probe // nil without Health
}

// New returns a sink. It panics on what [Config.Validate] refuses.
func New(cfg Config) *Sink {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Sprintf("webhook.New: %v", err))
	}
	cfg = cfg.withDefaults()
	tlsConfig, err := cfg.TLS.config()
	if err != nil { // the files changed since Validate
		panic(fmt.Sprintf("webhook.New: %v", err))
	}
	u, _ := parseURL("url", cfg.URL)
	sign, _ := newSigner(cfg.Secrets)
	s := &Sink{
		cfg:       cfg,
		origin:    u.Scheme + "://" + u.Host,
		header:    baseHeader(cfg, u),
		sign:      sign,
		redact:    cfg.redactor(),
		now:       time.Now,
		transport: newTransport(cfg, tlsConfig, cfg.Concurrency),
	}
	s.url = withoutUser(u)
	if cfg.Health != "" {
		s.health = newProbe(cfg, tlsConfig.Clone())
	}
	return s
}

// baseHeader is what every request to u carries.
func baseHeader(cfg Config, u *url.URL) http.Header {
	h := http.Header{"User-Agent": {"tripline/" + cfg.Version}}
	if u.User != nil {
		password, _ := u.User.Password()
		pair := u.User.Username() + ":" + password
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	for name, value := range cfg.Header {
		h.Set(name, string(value))
	}
	return h
}

func withoutUser(u *url.URL) *url.URL {
	bare := *u
	bare.User = nil
	return &bare
}

// String names the sink without its secrets: kind, scheme and host.
func (s *Sink) String() string { return s.cfg.name() }

// Close closes the idle connections. Attempts in flight go on, and close
// theirs when they end.
func (s *Sink) Close() error {
	s.transport.CloseIdleConnections()
	if s.health != nil {
		s.health.transport.CloseIdleConnections()
	}
	return nil
}

// Deliver posts a trigger, once. nil means that the whole of a 2xx answer (up
// to 64 KiB of its body) arrived in time. Errors are *[router.DeliveryError]
// and name the consumer's scheme and host, never a path, query or secret.
func (s *Sink) Deliver(ctx context.Context, t router.Trigger) error {
	if s.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return s.failed(router.Failed, 0, err)
	}
	var reached phase
	req, err := s.request(reached.trace(ctx), t)
	if err != nil {
		return s.failed(router.Unsent, 0, err)
	}
	// The transport and not a client: a client would follow redirects, keep
	// cookies, and put the URL into its errors.
	resp, err := s.transport.RoundTrip(req)
	switch {
	case errors.Is(err, egress.ErrForbidden):
		return s.failed(router.Unsent, 0, err)
	case err != nil:
		return s.failed(router.Failed, 0, inWords(ctx, err, reached.String()))
	}
	return s.judge(ctx, resp)
}

// request builds one attempt.
func (s *Sink) request(ctx context.Context, t router.Trigger) (*http.Request, error) {
	if !headerValue(t.ID) || t.ID == "" {
		return nil, fmt.Errorf("trigger id %q can't be sent in a header", t.ID)
	}
	// Not http.NewRequest, which would parse the URL again each time.
	req := (&http.Request{
		Method:        http.MethodPost,
		URL:           s.url,
		Host:          s.url.Host,
		Header:        maps.Clone(s.header),
		Body:          io.NopCloser(bytes.NewReader(t.Body)),
		ContentLength: int64(len(t.Body)),
		// The transport sends again, on a fresh connection, what it knows was
		// never written to one that the consumer had closed while idle.
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t.Body)), nil },
	}).WithContext(ctx)
	h := req.Header
	timestamp := strconv.FormatInt(s.now().Unix(), 10)
	h["Content-Type"] = []string{contentType}
	h["Webhook-Id"] = []string{t.ID}
	h["Webhook-Timestamp"] = []string{timestamp}
	if signature := s.sign.sign(t.ID, timestamp, t.Body); signature != "" {
		h["Webhook-Signature"] = []string{signature}
	}
	// A trace context comes from whoever published the location: a malformed
	// one is left out rather than fail the trigger.
	if validTraceparent(t.Traceparent) {
		h["Traceparent"] = []string{t.Traceparent}
	}
	if t.Redriven {
		h["Tripline-Redriven"] = []string{"true"}
	}
	return req, nil
}

// failed makes the error of an attempt, without secrets.
func (s *Sink) failed(cause router.Cause, status int, err error) *router.DeliveryError {
	return &router.DeliveryError{
		Cause:  cause,
		Status: status,
		Err:    s.redact.Error(fmt.Errorf("POST %s: %w", s.origin, err)),
	}
}

// validTraceparent checks the shape of W3C trace context, version 00 and the
// later ones that extend it: version-trace-parent-flags.
func validTraceparent(s string) bool {
	if len(s) < 55 || len(s) > 128 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	for i, c := range []byte(s) {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if i < 55 && !hex && c != '-' || c < '!' || c > '~' {
			return false
		}
	}
	return true
}

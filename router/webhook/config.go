package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/egress"
	"github.com/tripline/tripline/internal/secret"
)

// Secret is a string that prints, logs and marshals as a placeholder.
type Secret = secret.Value

// Egress says which addresses a webhook may connect to.
type Egress = egress.Rule

// The egress rules; see package egress. The zero value is EgressAny.
const (
	EgressAny    = egress.Any
	EgressPublic = egress.Public
)

// Defaults and limits of a [Config].
const (
	DefaultConcurrency   = 16
	DefaultHealthTimeout = time.Second
	DefaultMaxRetryAfter = time.Hour

	maxConcurrency = 4096
)

// Config describes one webhook consumer. Only URL is required.
type Config struct {
	// URL is where triggers are posted: http or https, without a fragment.
	// User and password in it become basic authentication.
	URL string `json:"-"`
	// Secrets sign each attempt, all of them, so that a receiver can move from
	// one to the next. One that begins with "whsec_" is base64 after that, as
	// Standard Webhooks writes them; any other is taken byte by byte. None:
	// attempts carry no signature.
	Secrets []Secret
	// Header is sent with each attempt and health check, for instance
	// Authorization. It can't replace a header that Tripline sets itself.
	Header map[string]Secret
	// Timeout bounds one attempt, from dial to the answer's last byte. 0: only
	// the context passed to Deliver does.
	Timeout time.Duration
	// Concurrency is how many attempts run at once: as many connections are
	// opened at most, and kept for reuse. 0: DefaultConcurrency.
	Concurrency int
	// MaxRetryAfter is the longest Retry-After that is honoured; a longer one
	// is cut to it. 0: DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// Egress restricts the addresses that are dialled.
	Egress Egress
	// TLS is for https URLs.
	TLS TLS
	// Health is a URL that answers a GET with 2xx when the consumer is well.
	// "" switches Check off.
	Health string `json:"-"`
	// HealthTimeout bounds one health check. 0: DefaultHealthTimeout.
	HealthTimeout time.Duration
	// Version goes into the User-Agent header. "": "dev".
	Version string
}

// Format prints the scheme and host of the URL, whatever the verb: the rest of
// a Config may be secret.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.name())
}

// LogValue logs what Format prints.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.name()) }

// name is all of a Config that may be shown.
func (c Config) name() string {
	u, err := parseURL("url", c.URL)
	if err != nil {
		return "webhook"
	}
	return "webhook " + u.Scheme + "://" + u.Host
}

// ours are the header names that a Config can't set.
var ours = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Te",
	"Trailer", "Traceparent", "Transfer-Encoding", "Tripline-Redriven", "Upgrade",
	"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp",
}

// Validate names each setting that [New] would refuse, its value unless that
// is secret, and what is allowed.
func (c Config) Validate() error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if _, err := parseURL("url", c.URL); err != nil {
		add(err)
	}
	if c.Health != "" {
		if _, err := parseURL("health", c.Health); err != nil {
			add(err)
		}
	}
	if _, err := newSigner(c.Secrets); err != nil {
		add(err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		if err := checkHeader(name, string(c.Header[name])); err != nil {
			add(err)
		}
	}
	if c.Concurrency < 0 || c.Concurrency > maxConcurrency {
		add(fmt.Errorf("concurrency %d: allowed are 1 to %d", c.Concurrency, maxConcurrency))
	}
	for name, d := range map[string]time.Duration{
		"timeout": c.Timeout, "health_timeout": c.HealthTimeout, "max_retry_after": c.MaxRetryAfter,
	} {
		if d < 0 {
			add(fmt.Errorf("%s %v: must not be negative", name, d))
		}
	}
	if err := c.Egress.Validate(); err != nil {
		add(err)
	}
	if _, err := c.TLS.config(); err != nil {
		add(err)
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.HealthTimeout == 0 {
		c.HealthTimeout = DefaultHealthTimeout
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return c
}

// parseURL reads a URL of the configuration. Its errors never quote it: what
// looks malformed to us may be a secret in the wrong place.
func parseURL(key, raw string) (*url.URL, error) {
	if raw == "" {
		return nil, fmt.Errorf("%s is missing", key)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a URL", key)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s must begin with http:// or https://", key)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s has no host", key)
	case u.Fragment != "":
		return nil, fmt.Errorf("%s has a #fragment, which is never sent: remove it", key)
	}
	return u, nil
}

// headerName is what HTTP allows as a field name (a token of RFC 9110).
var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// headerValue says whether HTTP allows v as a field value: no control
// characters but the tab.
func headerValue(v string) bool {
	for _, c := range []byte(v) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func checkHeader(name, value string) error {
	switch {
	case !headerName.MatchString(name):
		return fmt.Errorf("header %q is not a header name", name)
	case slices.Contains(ours, http.CanonicalHeaderKey(name)):
		return fmt.Errorf("header %s is set by tripline itself", name)
	case !headerValue(value):
		return fmt.Errorf("header %s has a value with a line break or control character", name)
	}
	return nil
}

// redactor knows every secret of c, in each form in which an answer or an
// error of the network could quote it.
func (c Config) redactor() secret.Redactor {
	var known []string
	for _, s := range c.Secrets {
		known = append(known, string(s), strings.TrimPrefix(string(s), secretPrefix))
	}
	for _, v := range c.Header {
		known = append(known, string(v))
		if _, token, ok := strings.Cut(string(v), " "); ok {
			known = append(known, token) // the credentials after "Bearer"
		}
	}
	for _, raw := range []string{c.URL, c.Health} {
		if u, err := url.Parse(raw); err == nil {
			known = append(known, urlSecrets(u)...)
		}
	}
	return secret.NewRedactor(known...)
}

// urlSecrets are the parts of a URL that may be secret: the credentials, the
// query's values, and the path, where chat services put their tokens.
func urlSecrets(u *url.URL) []string {
	known := []string{u.RequestURI(), u.Path, u.EscapedPath()}
	if u.User != nil {
		password, _ := u.User.Password()
		pair := u.User.Username() + ":" + password
		known = append(known, password, u.User.String(),
			base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	for _, values := range u.Query() {
		for _, v := range values {
			known = append(known, v, url.QueryEscape(v))
		}
	}
	return known
}

package config

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/tripline/tripline/internal/secret"
)

// URL is an address that may hold a secret: it prints without password and
// without the values of its query.
type URL struct{ text string }

// NewURL wraps an address, or several with commas between.
func NewURL(text string) URL { return URL{text} }

// Reveal returns the address as configured.
func (u URL) Reveal() string { return u.text }

// IsZero says that nothing was configured.
func (u URL) IsZero() bool { return u.text == "" }

// String is the address without what may be secret in it.
func (u URL) String() string {
	parts := strings.Split(u.text, ",")
	for i, p := range parts {
		parts[i] = redactURL(strings.TrimSpace(p))
	}
	return strings.Join(parts, ",")
}

// Format prints the redacted form for every verb of fmt.
func (u URL) Format(f fmt.State, _ rune) { io.WriteString(f, u.String()) }

// MarshalText gives encoders the redacted form.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue gives slog the redacted form.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

func redactURL(s string) string {
	if s == "" {
		return ""
	}
	p, err := url.Parse(s)
	if err != nil {
		return secret.Placeholder // it can't be told where its secret ends
	}
	if p.User != nil {
		// A NATS token stands where the user name is.
		p.User = url.User("xxxxx")
	}
	if p.RawQuery != "" {
		p.RawQuery = "xxxxx"
	}
	p.Fragment = ""
	return p.String()
}

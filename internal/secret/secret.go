// Package secret keeps what must not be seen out of logs, errors and answers:
// a [Value] prints as a placeholder wherever it ends up, and a [Redactor]
// removes known secrets from text that others wrote.
package secret

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Placeholder stands where a secret was.
const Placeholder = "[redacted]"

// Value is a secret. It prints, logs and marshals as [Placeholder], empty ones
// as the empty string; string(v) is the only way to its content.
type Value string

// String returns the placeholder.
func (v Value) String() string {
	if v == "" {
		return ""
	}
	return Placeholder
}

// Format prints the placeholder whatever the verb.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(v.String())) }

// LogValue logs the placeholder.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText gives the placeholder, so that JSON and YAML show nothing more.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Redactor replaces known secrets in text. The zero value replaces nothing. It
// is immutable, and safe for concurrent use.
type Redactor struct{ replacer *strings.Replacer }

// shortest is the length below which a string is no secret worth the name:
// replacing "a" or "10" would only garble the text.
const shortest = 4

// NewRedactor returns a redactor of the given strings. Those shorter than four
// bytes are left out.
func NewRedactor(secrets ...string) Redactor {
	known := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if len(s) >= shortest {
			known = append(known, s)
		}
	}
	if len(known) == 0 {
		return Redactor{}
	}
	// The replacer takes the first that matches at a place: longest first, so
	// that a secret which begins with another one goes whole.
	slices.SortFunc(known, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(known))
	for _, s := range slices.Compact(known) {
		pairs = append(pairs, s, Placeholder)
	}
	return Redactor{replacer: strings.NewReplacer(pairs...)}
}

// Text returns s without the secrets.
func (r Redactor) Text(s string) string {
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// Error returns an error that reads as err does, without the secrets. If there
// was one in it, errors.Is still recognises the causes, but nothing unwraps to
// them any more. nil stays nil.
func (r Redactor) Error(err error) error {
	if err == nil || r.replacer == nil {
		return err
	}
	text := err.Error()
	clean := r.Text(text)
	if clean == text {
		return err
	}
	return &redacted{text: clean, err: err}
}

// redacted hides the text of an error and keeps its identity.
type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }

// Is lets errors.Is recognise a cause without handing out its text.
func (e *redacted) Is(target error) bool { return errors.Is(e.err, target) }

// Timeout says whether the cause was a timeout, as net.Error does.
func (e *redacted) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.err)
	return ok && t.Timeout()
}

package secret_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tripline/tripline/internal/secret"
)

func TestR13_ValueNeverShows(t *testing.T) {
	const hidden = "hunter2hunter2"
	v := secret.Value(hidden)
	type holder struct {
		V secret.Value
		M map[string]secret.Value
		P *secret.Value
	}
	h := holder{v, map[string]secret.Value{"k": v}, &v}
	var log strings.Builder
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m", "v", v, "h", h)
	}
	out, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"log":  log.String(),
		"JSON": string(out),
		"err":  fmt.Errorf("with %s and %v", v, h).Error(),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown[verb] = fmt.Sprintf(verb, v) + fmt.Sprintf(verb, h) + fmt.Sprintf(verb, []any{v, &v})
	}
	for how, text := range shown {
		if strings.Contains(text, hidden) || strings.Contains(text, fmt.Sprintf("%x", hidden)) {
			t.Errorf("%s shows it: %s", how, text)
		}
	}
	if !strings.Contains(shown["%v"], secret.Placeholder) {
		t.Errorf("no placeholder in %s", shown["%v"])
	}
	if string(v) != hidden {
		t.Errorf("the value itself is %q", string(v))
	}
	if s := secret.Value("").String(); s != "" {
		t.Errorf("an empty one prints %q", s)
	}
}

func TestRedactorReplacesWholeSecrets(t *testing.T) {
	r := secret.NewRedactor("abcd", "abcdefgh", "xyz", "", "abcd", "geheim")
	for in, want := range map[string]string{
		"nothing":                "nothing",
		"abcdefgh, abcd, abcdef": "[redacted], [redacted], [redacted]ef",
		"xyz is too short":       "xyz is too short",
		"geheimgeheim":           "[redacted][redacted]",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	var none secret.Redactor
	if got := none.Text("abcd"); got != "abcd" {
		t.Errorf("the zero redactor gives %q", got)
	}
}

func TestRedactedErrorKeepsItsIdentity(t *testing.T) {
	r := secret.NewRedactor("geheim")
	if r.Error(nil) != nil {
		t.Error("nil is an error")
	}
	clean := errors.New("clean")
	if r.Error(clean) != clean {
		t.Error("a clean error was changed")
	}
	cause := fmt.Errorf("open geheim: %w", os.ErrDeadlineExceeded)
	err := r.Error(fmt.Errorf("wrap: %w", errors.Join(cause, context.Canceled)))
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.Canceled) || errors.Is(err, os.ErrExist) {
		t.Errorf("%v lost its causes", err)
	}
	if want := "wrap: open [redacted]: i/o timeout\ncontext canceled"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if errors.Unwrap(err) != nil {
		t.Error("it unwraps to the secret")
	}
	if e, ok := err.(interface{ Timeout() bool }); !ok || !e.Timeout() {
		t.Error("it is no timeout any more")
	}
}

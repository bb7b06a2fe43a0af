package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tripline/tripline/router/webhook"
)

// R13: whatever the consumer does, and whoever prints what, no secret shows.
func TestR13_SecretsNeverShow(t *testing.T) {
	secrets := map[string]string{
		"password":    "hunter2hunter2",
		"query value": "q-token-4711",
		"path token":  "T00000000-B0000-XXXXXXXX",
		"header":      "bearer-credential-99",
		"signing key": strings.TrimPrefix(oldSecret, "whsec_"),
		"raw secret":  rawSecret,
	}
	config := func(base string) webhook.Config {
		return webhook.Config{
			URL: strings.Replace(base, "://", "://ann:"+secrets["password"]+"@", 1) +
				"/services/" + secrets["path token"] + "?token=" + secrets["query value"] + "&n=1",
			Secrets: []webhook.Secret{oldSecret, rawSecret},
			Header:  map[string]webhook.Secret{"X-Api-Key": webhook.Secret("Bearer " + secrets["header"])},
			Health:  base + "/health?key=" + secrets["query value"],
		}
	}
	check := func(t *testing.T, what, text string) {
		t.Helper()
		for name, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s shows the %s: %s", what, name, text)
			}
		}
	}
	// A consumer that echoes all it gets, with a status.
	echo := func(code int) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			user, password, _ := r.BasicAuth()
			fmt.Fprintf(w, "%s %s %s %s %v %s", r.URL, user, password, r.URL.Query().Get("token"), r.Header, oldSecret)
		}).URL
	}
	// One that isn't HTTP, and sends back what it was sent.
	mirror := listen(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	closed := listen(t, func(net.Conn) {})
	for name, url := range map[string]string{
		"400": echo(400), "404": echo(404), "410": echo(410), "429": echo(429), "500": echo(500), "302": echo(302),
		"mirror": mirror, "closed": closed, "unresolvable": "http://no-such-host.invalid",
	} {
		t.Run(name, func(t *testing.T) {
			s := sink(t, config(url))
			err := s.Deliver(within(t, patience), trigger(1))
			if err == nil {
				t.Fatal("no error")
			}
			for e := error(err); e != nil; e = errors.Unwrap(e) {
				check(t, "the error", e.Error())
				check(t, "the error", fmt.Sprintf("%+v %#v", e, e))
			}
			if err := s.Check(within(t, patience)); err != nil {
				check(t, "the health check's error", err.Error())
			}
			check(t, "the name", s.String())
		})
	}
	t.Run("cut in two by the excerpt", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, strings.Repeat("x", 190)+secrets["header"])
		}).URL
		err := sink(t, config(url)).Deliver(within(t, patience), trigger(1))
		if err == nil || strings.Contains(err.Error(), secrets["header"][:6]) {
			t.Errorf("the error shows the beginning: %v", err)
		}
	})
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, "the error", sink(t, config(closed)).Deliver(ctx, trigger(1)).Error())
	})
	t.Run("config", func(t *testing.T) {
		cfg := config("http://example.com")
		check(t, "print", fmt.Sprintf("%v %+v %#v %s %q %v", cfg, cfg, cfg, cfg.Secrets, cfg.Header, struct{ C webhook.Config }{cfg}))
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "config", cfg, "secret", cfg.Secrets[0])
		check(t, "log", log.String())
		out, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "JSON", string(out))
	})
	t.Run("validation", func(t *testing.T) {
		cfg := config("http://example.com")
		cfg.URL = strings.Replace(cfg.URL, "http", "gopher", 1)
		cfg.Health = "http://exa mple.com/?key=" + secrets["query value"]
		cfg.Header["X-Bad"] = webhook.Secret(secrets["header"] + "\n")
		err := cfg.Validate()
		if err == nil {
			t.Fatal("valid")
		}
		check(t, "the error", err.Error())
	})
}

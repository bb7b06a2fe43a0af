package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

const serviceConfig = `
nats: {store_dir: "DIR/store", listen: "127.0.0.1:0", max_store: 1GiB}
ingest: {partitions: 2}
fences: [{file: yard.geojson}, {kv: true}]
admin: {listen: "127.0.0.1:0", token: TOKEN}
consumers:
  - name: hook
    webhook: {url: "HOOK", timeout: 2s}
    breaker: {p99: 1s}
  - name: bus
    nats: {subject: "out.{transition}.{device}"}
`

const yard = `{"type":"FeatureCollection","features":[{"type":"Feature","id":"yard","properties":{"name":"The yard"},
 "geometry":{"type":"Polygon","coordinates":[[[4,52],[5,52],[5,53],[4,53],[4,52]]]}}]}`

const testToken = "a-token-for-tests-only"

// liveService is a service in this process, with a webhook consumer whose answers the
// test chooses.
type liveService struct {
	t      *testing.T
	path   string // of the configuration
	nats   string
	admin  string
	status atomic.Int64 // what the webhook answers
	mu     sync.Mutex
	got    []delivered
	sent   time.Time
}

// delivered is what the webhook got.
type delivered struct {
	ID, Subject string
	redriven    bool
}

func (l *liveService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := int(l.status.Load())
	body, err := io.ReadAll(r.Body)
	if err == nil && status/100 == 2 {
		d := delivered{redriven: r.Header.Get("Tripline-Redriven") == "true"}
		if json.Unmarshal(body, &d) == nil {
			l.mu.Lock()
			l.got = append(l.got, d)
			l.mu.Unlock()
		}
	}
	w.WriteHeader(status)
}

func (l *liveService) deliveries() []delivered {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]delivered(nil), l.got...)
}

// startService runs one until the test ends. The commands find it through the
// environment.
func startService(t *testing.T) *liveService {
	t.Helper()
	clean(t)
	l := &liveService{t: t, sent: time.Now()}
	l.status.Store(http.StatusNoContent)
	hook := httptest.NewServer(l)
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	l.path = filepath.Join(dir, "tripline.yaml")
	text := strings.NewReplacer("DIR", dir, "HOOK", hook.URL, "TOKEN", testToken).Replace(serviceConfig)
	for path, text := range map[string]string{l.path: text, filepath.Join(dir, "yard.geojson"): yard} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func() (*config.Config, error) {
		return config.Load(l.path, config.WithEnv(func(string) (string, bool) { return "", false }))
	}
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, done := make(chan app.Started, 1), make(chan error, 1)
	go func() {
		done <- app.Run(ctx, cfg, app.Options{
			Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Reload: load,
			Started: func(s app.Started) { started <- s },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case s := <-started:
		l.nats, l.admin = s.NATS, s.Admin
	case err := <-done:
		done <- err
		t.Fatalf("run: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the service did not start")
	}
	// Running is not ready: the partitions load what was saved first.
	eventually(t, "the service is ready", func() bool {
		resp, err := http.Get(l.admin + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	t.Setenv("TRIPLINE_ADMIN", l.admin)
	t.Setenv("TRIPLINE_ADMIN_TOKEN", testToken)
	t.Setenv("NATS_URL", l.nats)
	eventually(t, "an answer to a location", func() bool { return tripline(t, "", "send", "warm-up", "0", "0").code == exitOK })
	return l
}

// visit has a device go in and out of the yard: two triggers.
func (l *liveService) visit(device string) {
	l.t.Helper()
	for _, lat := range []string{"52.5", "51"} {
		l.send(device, lat)
	}
}

func (l *liveService) send(device, lat string) {
	l.t.Helper()
	l.sent = l.sent.Add(time.Millisecond)
	l.must("send", device, lat, "4.5", "--ts", l.sent.Format(time.RFC3339Nano))
}

// must runs a command that has to succeed and returns its output.
func (l *liveService) must(args ...string) string {
	l.t.Helper()
	r := tripline(l.t, "", args...)
	if r.code != exitOK {
		l.t.Fatalf("tripline %s: %+v", strings.Join(args, " "), r)
	}
	return r.out
}

// mustJSON runs a command with --json and reads its output.
func mustJSON[T any](l *liveService, args ...string) (v T) {
	l.t.Helper()
	out := l.must(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		l.t.Fatalf("tripline %s --json: %v in\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

// hook is the state of the webhook consumer.
func (l *liveService) hook() live.Consumer {
	l.t.Helper()
	list := mustJSON[struct{ Consumers []live.Consumer }](l, "consumers")
	for _, c := range list.Consumers {
		if c.Name == "hook" {
			return c
		}
	}
	l.t.Fatal("no consumer hook")
	return live.Consumer{}
}

// answering runs a command on a terminal, with what is typed.
func answering(t *testing.T, typed string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(streams{ctx: t.Context(), in: strings.NewReader(typed), out: &out, err: &errs, asks: true}, args)
	return result{code, out.String(), errs.String()}
}

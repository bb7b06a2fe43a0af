package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

// patience bounds every wait for something that should happen soon.
const patience = 60 * time.Second

// trigger is what a consumer reads of a delivery.
type trigger struct {
	ID, Subject, Sequence, Type string
	Redriven                    bool
	Data                        struct {
		Device, Transition, Reason string
		At                         time.Time
		Initial                    bool
		Fence                      struct{ ID string }
		Fix                        struct{ TS time.Time }
	}
}

// hook is a webhook consumer that keeps what it gets.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	got     []trigger
	arrived chan struct{}
	answer  func(http.ResponseWriter, *http.Request) // nil: 204
}

func newHook(t *testing.T) *hook {
	h := &hook{arrived: make(chan struct{}, 1)}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	answer := h.answer
	h.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	var got trigger
	if err := json.Unmarshal(body, &got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	got.Redriven = r.Header.Get("Tripline-Redriven") == "true"
	h.mu.Lock()
	h.got = append(h.got, got)
	h.mu.Unlock()
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *hook) answers(f func(http.ResponseWriter, *http.Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = f
}

func (h *hook) triggers() []trigger {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]trigger(nil), h.got...)
}

// await returns once the hook has got what until wants to see.
func (h *hook) await(t *testing.T, what string, until func([]trigger) bool) []trigger {
	t.Helper()
	deadline := time.After(patience)
	for {
		got := h.triggers()
		if until(got) {
			return got
		}
		select {
		case <-h.arrived:
		case <-deadline:
			t.Fatalf("no %s within %v; got %d triggers", what, patience, len(got))
		}
	}
}

// write makes a configuration file in a fresh folder. %s in text stands for
// the folder.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "tripline.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "%s", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// running is a service inside the test's process.
type running struct {
	app.Started
	stop func() error // ends it in order and returns what Run returned
}

// start runs a service until the test ends.
func start(t *testing.T, path string, change ...func(*app.Options)) running {
	t.Helper()
	load := func() (*config.Config, error) {
		return config.Load(path, config.WithEnv(func(string) (string, bool) { return "", false }))
	}
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan app.Started, 1)
	done := make(chan error, 1)
	go func() {
		opts := app.Options{
			Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Reload:  load,
			Started: func(s app.Started) { started <- s },
		}
		for _, f := range change {
			f(&opts)
		}
		done <- app.Run(ctx, cfg, opts)
	}()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case s := <-started:
		return running{s, stop}
	case err := <-done:
		done <- err
		t.Fatalf("Run: %v", err)
	case <-time.After(patience):
		t.Fatal("the service did not start")
	}
	return running{}
}

// child is a service in a process of its own.
type child struct {
	cmd   *exec.Cmd
	nats  string
	admin string
}

func startChild(t *testing.T, path string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childConfig+"="+path, "NATS_URL="), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the service did not start: %v", err)
	}
	c.nats, c.admin, _ = strings.Cut(strings.TrimSpace(line), " ")
	return c
}

// kill ends the process as a power button would, and waits for its end.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
}

func connect(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// get reads a JSON answer of the admin API.
func get[T any](t *testing.T, url string) T {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var v T
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		t.Fatalf("GET %s: %s: %v", url, resp.Status, err)
	}
	return v
}

func location(lat, lon float64, ts time.Time) []byte {
	return fmt.Appendf(nil, `{"lat":%v,"lon":%v,"ts":%d}`, lat, lon, ts.UnixMilli())
}

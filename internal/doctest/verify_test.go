package doctest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
)

const (
	secretOne = "whsec_dGhpcyBpcyBhbiBleGFtcGxlOiBtYWtlIHlvdXIgb3duIQ=="
	secretTwo = "whsec_b3RoZXIgc2VjcmV0IG9mIHNvbWVib2R5IGVsc2U="
)

// The examples that docs/webhooks.md shows, each in its own language, take
// what Tripline's own webhook sink sends.
func TestVerifyExamples(t *testing.T) {
	examples := []struct {
		name    string
		command []string
	}{
		{"go", nil},
		{"python", []string{"python3", "examples/verify/python/consumer.py"}},
		{"node", []string{"node", "examples/verify/node/consumer.mjs"}},
	}
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			if e.command == nil {
				e.command = []string{build(t, "./examples/verify/go")}
			}
			if _, err := exec.LookPath(e.command[0]); err != nil {
				t.Skipf("no %s on this machine", e.command[0])
			}
			t.Parallel()
			r := startReceiver(t, e.command)
			testReceiver(t, r)
		})
	}
}

// receiver is a running example.
type receiver struct {
	url   string
	lines chan string
}

// startReceiver runs an example with the first secret, on a free port.
func startReceiver(t *testing.T, command []string) *receiver {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+secretOne)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &receiver{lines: make(chan string, 100)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(r.line(t))
	if m == nil {
		t.Fatal("it does not say where it listens")
	}
	r.url = m[1]
	return r
}

// line is the next line that the example prints.
func (r *receiver) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-r.lines:
		return strings.TrimSpace(line)
	case <-time.After(30 * time.Second):
		t.Fatal("it prints nothing")
		return ""
	}
}

func testReceiver(t *testing.T, r *receiver) {
	sink := func(secrets ...webhook.Secret) *webhook.Sink {
		s := webhook.New(webhook.Config{URL: r.url, Secrets: secrets, Timeout: 10 * time.Second})
		t.Cleanup(func() { s.Close() })
		return s
	}
	deliver := func(s *webhook.Sink, id, sequence string, redriven bool) error {
		body := fmt.Sprintf(`{"specversion":"1.0","id":%q,"sequence":%q,"data":{"device":"van-ü","transition":"enter","at":"2026-01-31T09:00:00.000Z","fence":{"id":"docks"}}}`, id, sequence)
		return s.Deliver(t.Context(), router.Trigger{ID: id, Sequence: sequence, Device: "van-ü", Redriven: redriven, Body: []byte(body)})
	}
	good, bad, changing := sink(secretOne), sink(secretTwo), sink(secretTwo, secretOne)

	for _, step := range []struct {
		name, id, sequence string
		sink               *webhook.Sink
		redriven           bool
		want               string // what is printed; "" is a refusal
	}{
		{"the first", "a", "0002", good, false, "new a van-ü enter docks"},
		{"the same again", "a", "0002", good, false, "duplicate a"},
		{"an older one, late", "z", "0001", good, false, "duplicate z"},
		{"another secret", "b", "0003", bad, false, ""},
		{"a secret that is being changed", "b", "0003", changing, false, "new b van-ü enter docks"},
		{"an old one, redriven", "y", "0001", good, true, "new y van-ü enter docks"},
		{"redriven twice", "y", "0001", good, true, "duplicate y"},
		{"the next after the redriven one", "c", "0004", good, false, "new c van-ü enter docks"},
	} {
		err := deliver(step.sink, step.id, step.sequence, step.redriven)
		if step.want == "" {
			if refused, ok := errors.AsType[*router.DeliveryError](err); !ok || refused.Status != http.StatusUnauthorized {
				t.Errorf("%s: %v, want a refusal with 401", step.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", step.name, err)
			continue
		}
		if got := r.line(t); got != step.want {
			t.Errorf("%s: printed %q, want %q", step.name, got, step.want)
		}
	}
	testForged(t, r.url)
}

// testForged sends what no sink of ours would.
func testForged(t *testing.T, url string) {
	for name, header := range map[string]map[string]string{
		"unsigned": {},
		"a timestamp of yesterday": {
			"webhook-id": "a", "webhook-timestamp": strconv.FormatInt(time.Now().Add(-24*time.Hour).Unix(), 10), "webhook-signature": "v1,AAAA",
		},
		"a signature of another kind": {
			"webhook-id": "a", "webhook-timestamp": strconv.FormatInt(time.Now().Unix(), 10), "webhook-signature": "v1a,AAAA v1, v1,%%% x",
		},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(`{}`)))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: answered %d, want 401", name, resp.StatusCode)
		}
	}
}

// build builds a command of the working tree and returns the binary's path.
func build(t *testing.T, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return path
}

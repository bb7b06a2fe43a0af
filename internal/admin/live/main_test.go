package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/admin/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener whose connections are in memory, so that a server and
// its clients can live in a bubble of virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs the hub behind a real HTTP server and returns a client of it.
func serve(t *testing.T, hub *live.Hub, configure func(*http.Server)) *http.Client {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: hub}
	if configure != nil {
		configure(server)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return &http.Client{Transport: transport}
}

// event is one server-sent event; a comment has no name.
type event struct{ name, data string }

func (e event) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), into); err != nil {
		t.Fatalf("event %s: %v in %s", e.name, err, e.data)
	}
}

// watch opens a stream and sends its events, comments included, until it
// ends. It returns after the hello.
func watch(t *testing.T, client *http.Client) <-chan event {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://tripline/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("status %d, content type %q", response.StatusCode, got)
	}
	events := make(chan event, 10_000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 4<<20)
		var e event
		for lines.Scan() {
			line := lines.Text()
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = data
			} else if line == "" {
				events <- e
				e = event{}
			}
		}
	}()
	t.Cleanup(func() { response.Body.Close(); <-done })
	return events
}

// ready returns what has arrived, without waiting.
func ready(events <-chan event) []event {
	var list []event
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return list
			}
			list = append(list, e)
		default:
			return list
		}
	}
}

func only(list []event, name string) []event {
	var found []event
	for _, e := range list {
		if e.name == name {
			found = append(found, e)
		}
	}
	return found
}

package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

func trigger(n int) router.Trigger {
	return router.Trigger{
		ID:          fmt.Sprintf("TRIGGER%d", n),
		Device:      "truck.7",
		Fence:       "depot-7",
		Kind:        geofence.Enter,
		Body:        fmt.Appendf(nil, `{"specversion":"1.0","id":"TRIGGER%d"}`, n),
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

// consumer is an HTTP server that remembers what it was sent.
type consumer struct {
	*httptest.Server
	mu    sync.Mutex // guards calls
	calls []call
}

type call struct {
	method, path string
	header       http.Header
	body         []byte
	remote       string // the client's end of the connection
	proto        int    // major version of HTTP
}

// serve runs a consumer. The body has been read when answer is called.
func serve(t testing.TB, answer http.HandlerFunc) *consumer {
	t.Helper()
	c := newConsumer(answer)
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func newConsumer(answer http.HandlerFunc) *consumer {
	c := &consumer{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.calls = append(c.calls, call{r.Method, r.URL.RequestURI(), r.Header, body, r.RemoteAddr, r.ProtoMajor})
		c.mu.Unlock()
		answer(w, r)
	}))
	c.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	return c
}

func (c *consumer) received() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]call(nil), c.calls...)
}

// status answers with a status and nothing else.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// sink makes a sink that is closed with the test.
func sink(t testing.TB, cfg webhook.Config) *webhook.Sink {
	t.Helper()
	s := webhook.New(cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// within is the context of an attempt that may take d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// relisten listens on an address that has just become free.
func relisten(t *testing.T, addr string) net.Listener {
	t.Helper()
	var l net.Listener
	waitFor(t, addr+" is free", func() bool {
		var err error
		l, err = net.Listen("tcp", addr)
		return err == nil
	})
	return l
}

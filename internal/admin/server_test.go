package admin_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/admin"
)

// A connection that is closed on a client that still sends lingers for half a
// second, then ends by itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// start serves a handler that answers "ok" and returns the base URL.
func start(t *testing.T, token string, checks ...admin.Check) string {
	t.Helper()
	server, err := admin.Listen(admin.Config{
		Listen: "127.0.0.1:0",
		Token:  token,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			io.WriteString(w, "ok")
		}),
		Ready: func(context.Context) []admin.Check { return checks },
		Log:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + server.Addr().String()
}

func status(t *testing.T, method, url string, body io.Reader, set func(*http.Request)) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestTokenIsAskedForEverywhereButHealth(t *testing.T) {
	base := start(t, "s3cret")
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, tc := range []struct {
		name, path string
		set        func(*http.Request)
		want       int
	}{
		{"no token", "/api/v1/consumers", nil, 401},
		{"wrong token", "/metrics", bearer("s3cre"), 401},
		{"longer token", "/metrics", bearer("s3cret1"), 401},
		{"right token", "/api/v1/consumers", bearer("s3cret"), 200},
		{"liveness needs none", "/healthz", nil, 200},
		{"readiness needs none", "/readyz", nil, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := status(t, "GET", base+tc.path, nil, tc.set); got != tc.want {
				t.Errorf("GET %s = %d, want %d", tc.path, got, tc.want)
			}
		})
	}
}

func TestListenBeyondLoopbackNeedsToken(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8080", "example.com:80"} {
		_, err := admin.Listen(admin.Config{Listen: address, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "admin.token") {
			t.Errorf("Listen(%q) without a token: %v; want an error that names admin.token", address, err)
		}
	}
}

func TestBusyPortNamesTheRemedy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = admin.Listen(admin.Config{Listen: taken.Addr().String(), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "admin.listen") {
		t.Errorf("Listen on a busy port: %v; want an error that names admin.listen", err)
	}
}

func TestWithoutTokenOtherNamesAndSitesAreRefused(t *testing.T) {
	base := start(t, "")
	if got := status(t, "GET", base+"/metrics", nil, func(r *http.Request) { r.Host = "evil.example" }); got != 403 {
		t.Errorf("a request by another host name = %d, want 403", got)
	}
	crossSite := func(r *http.Request) {
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}
	if got := status(t, "POST", base+"/api/v1/reload", nil, crossSite); got != 403 {
		t.Errorf("a POST from another site = %d, want 403", got)
	}
	if got := status(t, "POST", base+"/api/v1/reload", nil, nil); got != 200 {
		t.Errorf("a POST from a command line = %d, want 200", got)
	}
}

func TestBodyAndHeadersAreBounded(t *testing.T) {
	base := start(t, "")
	if got := status(t, "PUT", base+"/api/v1/fences/x", io.LimitReader(zeros{}, 9<<20), nil); got != 413 {
		t.Errorf("a body of 9 MiB = %d, want 413", got)
	}
	long := func(r *http.Request) { r.Header.Set("X-Long", strings.Repeat("x", 64<<10)) }
	if got := status(t, "GET", base+"/metrics", nil, long); got != 431 {
		t.Errorf("64 KiB of headers = %d, want 431", got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestReadinessSaysWhy(t *testing.T) {
	if got := status(t, "GET", start(t, "", admin.Check{Name: "nats", OK: true})+"/readyz", nil, nil); got != 200 {
		t.Errorf("ready = %d, want 200", got)
	}
	base := start(t, "", admin.Check{Name: "nats", OK: true}, admin.Check{Name: "progress", Reason: "stalled"})
	if got := status(t, "GET", base+"/readyz", nil, nil); got != 503 {
		t.Errorf("with a failing check = %d, want 503", got)
	}
}

package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/router/webhook"
)

func TestCheckAsksTheHealthURL(t *testing.T) {
	var mu sync.Mutex
	code := 200
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(code)
	})
	s := sink(t, webhook.Config{URL: c.URL + "/hook", Health: c.URL + "/healthz", Version: "9"})
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	code = 503
	mu.Unlock()
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "answered 503") {
		t.Errorf("sick: %v", err)
	}
	got := c.received()[0]
	if got.method != http.MethodGet || got.path != "/healthz" || got.header.Get("User-Agent") != "tripline/9" || len(got.body) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestCheckWithoutHealthURL(t *testing.T) {
	s := sink(t, webhook.Config{URL: "https://example.com"})
	if err := s.Check(t.Context()); !errors.Is(err, webhook.ErrNoHealth) {
		t.Error(err)
	}
}

// A health check gets through, in its own short time, while every connection
// of the deliveries hangs.
func TestCheckIsApartFromHangingDeliveries(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			<-release
		}
	})
	s := sink(t, webhook.Config{URL: c.URL, Health: c.URL, Concurrency: 2, HealthTimeout: patience})
	var wg sync.WaitGroup
	ctx := within(t, patience)
	for n := range 4 {
		wg.Go(func() { _ = s.Deliver(ctx, trigger(n)) })
	}
	waitFor(t, "both connections hang", func() bool { return len(c.received()) == 2 })
	if err := s.Check(ctx); err != nil {
		t.Error(err)
	}
	close(release)
	wg.Wait()

	hung := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s = sink(t, webhook.Config{URL: hung.URL, Health: hung.URL, HealthTimeout: 50 * time.Millisecond})
	begin := time.Now()
	if err := s.Check(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > patience/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

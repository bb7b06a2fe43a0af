package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
)

func TestDeliverPostsTheTrigger(t *testing.T) {
	c := serve(t, status(http.StatusNoContent))
	s := sink(t, webhook.Config{
		URL:     c.URL + "/hooks/tripline?tenant=4711",
		Version: "1.2.3",
		Header:  map[string]webhook.Secret{"authorization": "Bearer abcdef", "X-Region": "north"},
	})
	tr := trigger(1)
	if err := s.Deliver(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	tr.Redriven, tr.Traceparent = true, "no trace context\r\nX-Evil: 1"
	if err := s.Deliver(t.Context(), tr); err != nil {
		t.Fatal(err)
	}

	calls := c.received()
	if len(calls) != 2 {
		t.Fatalf("%d calls, want 2", len(calls))
	}
	got := calls[0]
	if got.method != http.MethodPost || got.path != "/hooks/tripline?tenant=4711" {
		t.Errorf("%s %s", got.method, got.path)
	}
	if !bytes.Equal(got.body, tr.Body) {
		t.Errorf("body %q, want %q", got.body, tr.Body)
	}
	for name, want := range map[string]string{
		"Content-Type":      "application/cloudevents+json",
		"User-Agent":        "tripline/1.2.3",
		"Webhook-Id":        "TRIGGER1",
		"Webhook-Signature": "",
		"Traceparent":       trigger(1).Traceparent,
		"Tripline-Redriven": "",
		"Authorization":     "Bearer abcdef",
		"X-Region":          "north",
		"Accept-Encoding":   "",
	} {
		if v := got.header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
	if v := calls[1].header.Get("Tripline-Redriven"); v != "true" {
		t.Errorf("Tripline-Redriven: %q", v)
	}
	if v := calls[1].header.Get("Traceparent") + calls[1].header.Get("X-Evil"); v != "" {
		t.Errorf("malformed trace context was passed on: %q", v)
	}
}

func TestUserInURLBecomesBasicAuthentication(t *testing.T) {
	c := serve(t, status(http.StatusOK))
	s := sink(t, webhook.Config{URL: strings.Replace(c.URL, "://", "://ann:s3cr%40t@", 1)})
	if err := s.Deliver(t.Context(), trigger(1)); err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Header: c.received()[0].header}
	if user, password, ok := r.BasicAuth(); !ok || user != "ann" || password != "s3cr@t" {
		t.Errorf("basic authentication %q %q %v", user, password, ok)
	}
}

// Each status says what DESIGN wants it to say; what isn't 2xx carries it.
func TestR9_AnswersMeanWhatTheySay(t *testing.T) {
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name       string
		status     int
		retryAfter string
		cause      router.Cause // of an error
		wait       time.Duration
		ok         bool
	}{
		{name: "200", status: 200, ok: true},
		{name: "201", status: 201, ok: true},
		{name: "202", status: 202, ok: true},
		{name: "204 is no failure", status: 204, ok: true},
		{name: "299", status: 299, ok: true},
		{name: "301 is not followed", status: 301, cause: router.Failed},
		{name: "302", status: 302, cause: router.Failed},
		{name: "304", status: 304, cause: router.Failed},
		{name: "307", status: 307, cause: router.Failed},
		{name: "308", status: 308, cause: router.Failed},
		{name: "400 will never be taken", status: 400, cause: router.Rejected},
		{name: "401", status: 401, cause: router.Failed},
		{name: "403", status: 403, cause: router.Failed},
		{name: "404", status: 404, cause: router.Failed},
		{name: "408", status: 408, cause: router.Failed},
		{name: "410 wants no more", status: 410, cause: router.Gone},
		{name: "413", status: 413, cause: router.Rejected},
		{name: "415", status: 415, cause: router.Rejected},
		{name: "422", status: 422, cause: router.Rejected},
		{name: "429", status: 429, cause: router.Throttled},
		{name: "429 in seconds", status: 429, retryAfter: "7", cause: router.Throttled, wait: 7 * time.Second},
		{name: "429 for a year", status: 429, retryAfter: "31536000", cause: router.Throttled, wait: time.Hour},
		{name: "429 beyond numbers", status: 429, retryAfter: "99999999999999999999", cause: router.Throttled, wait: time.Hour},
		{name: "429 in words", status: 429, retryAfter: "soon", cause: router.Throttled},
		{name: "429 negative", status: 429, retryAfter: "-5", cause: router.Throttled},
		{name: "500", status: 500, retryAfter: "7", cause: router.Failed},
		{name: "502", status: 502, cause: router.Failed},
		{name: "503", status: 503, cause: router.Unavailable},
		{name: "503 in seconds", status: 503, retryAfter: "120", cause: router.Unavailable, wait: 2 * time.Minute},
		{name: "503 by date", status: 503, retryAfter: date(30 * time.Second), cause: router.Unavailable, wait: 30 * time.Second},
		{name: "503 by a past date", status: 503, retryAfter: date(-time.Hour), cause: router.Unavailable},
		{name: "504", status: 504, cause: router.Failed},
		{name: "599", status: 599, cause: router.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.Header().Set("Location", "http://127.0.0.1:1/internal")
				w.WriteHeader(c.status)
			})
			err := sink(t, webhook.Config{URL: server.URL}).Deliver(within(t, patience), trigger(1))
			if n := len(server.received()); n != 1 {
				t.Errorf("%d calls, want one attempt", n)
			}
			if c.ok {
				if err != nil {
					t.Errorf("failed: %v", err)
				}
				return
			}
			d, ok := errors.AsType[*router.DeliveryError](err)
			if !ok {
				t.Fatalf("%v is no DeliveryError", err)
			}
			if d.Cause != c.cause || d.Status != c.status {
				t.Errorf("cause %d status %d, want %d %d", d.Cause, d.Status, c.cause, c.status)
			}
			// A date is read to the second.
			if diff := d.RetryAfter - c.wait; diff < -2*time.Second || diff > 2*time.Second {
				t.Errorf("retry after %v, want %v", d.RetryAfter, c.wait)
			}
		})
	}
}

// The date of Retry-After is measured by the consumer's own clock.
func TestR9_RetryAfterDateNeedsNoCommonClock(t *testing.T) {
	theirs := time.Now().Add(-3 * time.Hour)
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", theirs.UTC().Format(http.TimeFormat))
		w.Header().Set("Retry-After", theirs.Add(45*time.Second).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	err := sink(t, webhook.Config{URL: c.URL}).Deliver(within(t, patience), trigger(1))
	if d, ok := errors.AsType[*router.DeliveryError](err); !ok || d.RetryAfter != 45*time.Second {
		t.Errorf("%+v, want a wait of 45s", d)
	}
}

func TestRefusalShowsWhatTheConsumerSaid(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte("{\"error\":\n\t\"unknown\x00 fence\"}" + strings.Repeat(" x", 500)))
	})
	err := sink(t, webhook.Config{URL: c.URL}).Deliver(within(t, patience), trigger(1))
	if err == nil || !strings.Contains(err.Error(), `{"error": "unknown fence"}`) {
		t.Errorf("error %v doesn't quote the answer", err)
	}
	if err != nil && len(err.Error()) > 400 {
		t.Errorf("error of %d bytes quotes too much", len(err.Error()))
	}
}

func TestTriggerThatCannotBeSentIsUnsent(t *testing.T) {
	c := serve(t, status(200))
	s := sink(t, webhook.Config{URL: c.URL})
	for _, id := range []string{"", "a\r\nX-Evil: 1"} {
		tr := trigger(1)
		tr.ID = id
		err := s.Deliver(t.Context(), tr)
		if d, ok := errors.AsType[*router.DeliveryError](err); !ok || d.Cause != router.Unsent {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if n := len(c.received()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	c := serve(t, status(200))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := sink(t, webhook.Config{URL: c.URL}).Deliver(ctx, trigger(1))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := len(c.received()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestNewPanicsOnWhatValidateRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	webhook.New(webhook.Config{URL: "ftp://example.com"})
}

// R4: repeats of a trigger, also redriven ones, carry one id and one body.
func TestR4_RepeatsCarryOneID(t *testing.T) {
	c := serve(t, status(500))
	s := sink(t, webhook.Config{URL: c.URL})
	for n := range 3 {
		tr := trigger(1)
		tr.Redriven = n == 2
		if err := s.Deliver(within(t, patience), tr); err == nil {
			t.Error("a refusal passed for a delivery")
		}
	}
	for n, call := range c.received() {
		if id := call.header.Get("Webhook-Id"); id != trigger(1).ID || !bytes.Equal(call.body, trigger(1).Body) {
			t.Errorf("attempt %d: id %q body %q", n, id, call.body)
		}
	}
}

// R5: one call is one attempt, also where the connection breaks after the
// request was written: net/http would send an idempotent one again.
func TestR5_OneCallIsOneAttempt(t *testing.T) {
	var requests atomic.Int32
	s := sink(t, webhook.Config{URL: listen(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if requests.Add(1) > 1 {
				return // without an answer
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})})
	if err := s.Deliver(within(t, patience), trigger(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Deliver(within(t, patience), trigger(2)); err == nil {
		t.Error("delivered without an answer")
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for two calls", n)
	}
}

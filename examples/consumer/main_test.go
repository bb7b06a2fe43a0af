package main

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const secret = "whsec_dGhpcyBpcyBhbiBleGFtcGxlOiBtYWtlIHlvdXIgb3duIQ=="

func body(id, sequence string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"sequence":%q,"data":{"device":"van-1","transition":"enter","at":"2026-01-31T09:00:00.000Z","fence":{"id":"docks","name":"The docks"}}}`, id, sequence)
}

func post(t *testing.T, c *consumer, sign, body string, redriven bool) int {
	t.Helper()
	w, err := webhooks.NewWebhook(sign)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := w.Sign("id", now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/triggers", strings.NewReader(body))
	r.Header.Set("webhook-id", "id")
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", signature)
	if redriven {
		r.Header.Set("tripline-redriven", "true")
	}
	rec := httptest.NewRecorder()
	c.ServeHTTP(rec, r)
	return rec.Code
}

func TestConsumer(t *testing.T) {
	var out bytes.Buffer
	c, err := newConsumer(secret, log.New(&out, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	const line = "2026-01-31T09:00:00Z  van-1    enter  The docks"
	steps := []struct {
		name, sign, body string
		redriven         bool
		code             int
		want             string
	}{
		{"first", secret, body("a", "002"), false, 204, line + "\n"},
		{"the same again", secret, body("a", "002"), false, 204, line + " (seen before, dropped)\n"},
		{"an older one, late", secret, body("z", "001"), false, 204, line + " (seen before, dropped)\n"},
		{"the next", secret, body("b", "003"), false, 204, line + "\n"},
		{"an old one, redriven", secret, body("z", "001"), true, 204, line + "\n"},
		{"redriven twice", secret, body("z", "001"), true, 204, line + " (seen before, dropped)\n"},
		{"another's secret", "whsec_b3RoZXIgc2VjcmV0IG9mIHNvbWVib2R5IGVsc2U=", body("c", "004"), false, 401, "refused: unable to verify payload, err: no matching signature found\n"},
		{"no trigger", secret, "hello", false, 422, ""},
	}
	for _, s := range steps {
		out.Reset()
		if code := post(t, c, s.sign, s.body, s.redriven); code != s.code || out.String() != s.want {
			t.Errorf("%s: got %d %q, want %d %q", s.name, code, out.String(), s.code, s.want)
		}
	}
}

func TestConsumerNeedsASecret(t *testing.T) {
	if _, err := newConsumer("", log.Default()); err == nil {
		t.Error("no error without a secret")
	}
}

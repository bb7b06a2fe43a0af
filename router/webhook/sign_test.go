package webhook_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/tripline/tripline/router/webhook"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	rawSecret = "a plain passphrase, not base64"
)

// The signature verifies with the reference library, with each secret while
// they rotate, and with no other.
func TestR12_SignedWithEachSecret(t *testing.T) {
	c := serve(t, status(204))
	s := sink(t, webhook.Config{URL: c.URL, Secrets: []webhook.Secret{oldSecret, newSecret, rawSecret}})
	if err := s.Deliver(t.Context(), trigger(1)); err != nil {
		t.Fatal(err)
	}
	got := c.received()[0]
	for _, secret := range []string{oldSecret, newSecret} {
		v, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(got.body, got.header); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
		if err := v.Verify(append(got.body, ' '), got.header); err == nil {
			t.Errorf("%s verifies another body", secret)
		}
	}
	raw, _ := standardwebhooks.NewWebhookRaw([]byte(rawSecret))
	if err := raw.Verify(got.body, got.header); err != nil {
		t.Errorf("raw secret: %v", err)
	}
	other, _ := standardwebhooks.NewWebhookRaw([]byte("another passphrase"))
	if err := other.Verify(got.body, got.header); err == nil {
		t.Error("a secret that isn't configured verifies")
	}
}

// Each attempt is signed anew, with its own time.
func TestR12_SignedPerAttempt(t *testing.T) {
	c := serve(t, status(204))
	s := sink(t, webhook.Config{URL: c.URL, Secrets: []webhook.Secret{oldSecret}})
	// An hour apart: a receiver refuses what is older than five minutes.
	begin := time.Now().Add(-time.Hour)
	for n := range 2 {
		s.SetNow(func() time.Time { return begin.Add(time.Duration(n) * time.Hour) })
		if err := s.Deliver(t.Context(), trigger(1)); err != nil {
			t.Fatal(err)
		}
	}
	calls := c.received()
	for n, call := range calls {
		stamp, err := strconv.ParseInt(call.header.Get("Webhook-Timestamp"), 10, 64)
		if want := begin.Add(time.Duration(n) * time.Hour).Unix(); err != nil || stamp != want {
			t.Errorf("attempt %d has timestamp %d, want %d", n, stamp, want)
		}
	}
	if calls[0].header.Get("Webhook-Signature") == calls[1].header.Get("Webhook-Signature") {
		t.Error("both attempts have one signature")
	}
	if calls[0].header.Get("Webhook-Id") != calls[1].header.Get("Webhook-Id") {
		t.Error("the attempts have different ids")
	}
	v, _ := standardwebhooks.NewWebhook(oldSecret)
	if err := v.Verify(calls[0].body, calls[0].header); err == nil {
		t.Error("the attempt of an hour ago verifies")
	}
	if err := v.Verify(calls[1].body, calls[1].header); err != nil {
		t.Errorf("the attempt of now: %v", err)
	}
}

// The signature is what the reference library itself would send.
func TestSignatureIsTheReferenceOne(t *testing.T) {
	c := serve(t, status(204))
	s := sink(t, webhook.Config{URL: c.URL, Secrets: []webhook.Secret{newSecret}})
	now := time.Unix(1_700_000_000, 0)
	s.SetNow(func() time.Time { return now })
	if err := s.Deliver(t.Context(), trigger(1)); err != nil {
		t.Fatal(err)
	}
	v, _ := standardwebhooks.NewWebhook(newSecret)
	want, err := v.Sign("TRIGGER1", now, trigger(1).Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.received()[0].header.Get("Webhook-Signature"); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestSecretsAreChecked(t *testing.T) {
	for secret, want := range map[string]string{
		"":                                "secrets[0]: is empty",
		"whsec_":                          "secrets[0]: is not base64",
		"whsec_***":                       "secrets[0]: is not base64",
		"whsk_" + strings.Repeat("A", 44): "asymmetric",
	} {
		err := webhook.Config{URL: "https://example.com", Secrets: []webhook.Secret{webhook.Secret(secret)}}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", secret, err, want)
		}
		if err != nil && len(secret) > 6 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	c := newConsumer(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	c.Start()
	defer c.Close()
	s := sink(b, webhook.Config{URL: c.URL, Secrets: []webhook.Secret{oldSecret}})
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Deliver(b.Context(), trigger(1)); err != nil {
			b.Fatal(err)
		}
	}
}

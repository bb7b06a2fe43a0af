package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
)

// The egress rule holds on the dialled address, also when a name leads there
// and for the health check; nothing is sent.
func TestEgressPublicRefusesInnerAddresses(t *testing.T) {
	c := serve(t, status(204))
	_, port, _ := strings.Cut(strings.TrimPrefix(c.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "0.0.0.0", "[::]"} {
		t.Run(host, func(t *testing.T) {
			s := sink(t, webhook.Config{URL: "http://" + host + ":" + port, Egress: webhook.EgressPublic, Health: c.URL})
			err := s.Deliver(within(t, patience), trigger(1))
			d, ok := errors.AsType[*router.DeliveryError](err)
			if !ok || d.Cause != router.Unsent || !strings.Contains(err.Error(), "forbidden by egress: public") {
				t.Errorf("%v", err)
			}
			if err := s.Check(within(t, patience)); err == nil {
				t.Error("the health check got through")
			}
		})
	}
	if n := len(c.received()); n != 0 {
		t.Errorf("%d calls got through", n)
	}
	if err := sink(t, webhook.Config{URL: c.URL, Egress: webhook.EgressAny}).Deliver(within(t, patience), trigger(1)); err != nil {
		t.Errorf("egress any: %v", err)
	}
}

// A redirect to an inner address leads nowhere.
func TestR9_RedirectIsNotFollowed(t *testing.T) {
	inner := serve(t, status(204))
	outer := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/admin", http.StatusTemporaryRedirect)
	})
	s := sink(t, webhook.Config{URL: outer.URL, Health: outer.URL})
	err := s.Deliver(within(t, patience), trigger(1))
	if err == nil || !strings.Contains(err.Error(), "a redirect, which is not followed") {
		t.Errorf("%v", err)
	}
	if err := s.Check(within(t, patience)); err == nil {
		t.Error("the health check took a redirect for health")
	}
	if n := len(inner.received()); n != 0 {
		t.Errorf("the inner server got %d calls", n)
	}
}

// No proxy is used, whatever the environment says.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	proxy := serve(t, status(200))
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	s := sink(t, webhook.Config{URL: "http://no-such-host.invalid"})
	if err := s.Deliver(within(t, patience), trigger(1)); err == nil {
		t.Error("delivered to a host that doesn't exist")
	}
	if n := len(proxy.received()); n != 0 {
		t.Errorf("the proxy got %d calls", n)
	}
}

// serveTLS runs an https consumer and writes its certificate and key to files.
func serveTLS(t *testing.T, change func(*httptest.Server)) (c *consumer, cert, key string) {
	t.Helper()
	c = newConsumer(status(204))
	if change != nil {
		change(c.Server)
	}
	c.StartTLS()
	t.Cleanup(c.Close)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return c, write("cert.pem", "CERTIFICATE", c.Certificate().Raw), write("key.pem", "PRIVATE KEY", der)
}

func TestTLSTrustsOnlyTheGivenAuthority(t *testing.T) {
	c, cert, _ := serveTLS(t, nil)
	if err := sink(t, webhook.Config{URL: c.URL, TLS: webhook.TLS{CA: cert}}).Deliver(within(t, patience), trigger(1)); err != nil {
		t.Errorf("trusted: %v", err)
	}
	err := sink(t, webhook.Config{URL: c.URL}).Deliver(within(t, patience), trigger(1))
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown authority: %v", err)
	}
	if n := len(c.received()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestHTTP2IsSpokenWhereOffered(t *testing.T) {
	c, cert, _ := serveTLS(t, func(s *httptest.Server) { s.EnableHTTP2 = true })
	s := sink(t, webhook.Config{URL: c.URL, TLS: webhook.TLS{CA: cert}})
	for n := range 3 {
		if err := s.Deliver(within(t, patience), trigger(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range c.received() {
		if call.proto != 2 || call.remote != c.received()[0].remote {
			t.Errorf("HTTP/%d from %s", call.proto, call.remote)
		}
	}
}

func TestTLSBelow12IsRefused(t *testing.T) {
	c, cert, _ := serveTLS(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // the point
	})
	err := sink(t, webhook.Config{URL: c.URL, TLS: webhook.TLS{CA: cert}}).Deliver(within(t, patience), trigger(1))
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("%v", err)
	}
}

func TestClientCertificateIsShown(t *testing.T) {
	c, cert, key := serveTLS(t, func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	})
	withCert := webhook.TLS{CA: cert, Cert: cert, Key: key}
	if err := sink(t, webhook.Config{URL: c.URL, TLS: withCert}).Deliver(within(t, patience), trigger(1)); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := sink(t, webhook.Config{URL: c.URL, TLS: webhook.TLS{CA: cert}}).Deliver(within(t, patience), trigger(1)); err == nil {
		t.Error("delivered without a certificate")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  webhook.Config
		want string
	}{
		"no url":         {webhook.Config{}, "url is missing"},
		"scheme":         {webhook.Config{URL: "ftp://example.com"}, "url must begin with http:// or https://"},
		"no host":        {webhook.Config{URL: "https:///path"}, "url has no host"},
		"fragment":       {webhook.Config{URL: "https://example.com/#x"}, "url has a #fragment"},
		"unparsable":     {webhook.Config{URL: "https://exa mple.com"}, "url is not a URL"},
		"health":         {webhook.Config{URL: "https://example.com", Health: "example.com"}, "health must begin with http"},
		"concurrency":    {webhook.Config{URL: "https://example.com", Concurrency: -1}, "concurrency -1: allowed are 1 to 4096"},
		"timeout":        {webhook.Config{URL: "https://example.com", Timeout: -1}, "timeout -1ns"},
		"egress":         {webhook.Config{URL: "https://example.com", Egress: "none"}, `egress "none" is unknown`},
		"ca":             {webhook.Config{URL: "https://example.com", TLS: webhook.TLS{CA: "/no/such/file"}}, "ca: open /no/such/file"},
		"cert alone":     {webhook.Config{URL: "https://example.com", TLS: webhook.TLS{Cert: "x"}}, "must be set together"},
		"header name":    {webhook.Config{URL: "https://example.com", Header: map[string]webhook.Secret{"a b": "x"}}, "not a header name"},
		"our own header": {webhook.Config{URL: "https://example.com", Header: map[string]webhook.Secret{"webhook-id": "x"}}, "set by tripline itself"},
		"header value":   {webhook.Config{URL: "https://example.com", Header: map[string]webhook.Secret{"X": "a\nb"}}, "line break"},
	} {
		if err := c.cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := (webhook.Config{URL: "https://example.com"}).Validate(); err != nil {
		t.Errorf("a URL alone: %v", err)
	}
}

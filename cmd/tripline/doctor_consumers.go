package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"time"

	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/egress"
)

// placeholder is a part of a subject that a trigger fills in.
var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// chanSeq yields what a channel has until it is closed.
func chanSeq[T any](ch <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range ch {
			if !yield(v) {
				return
			}
		}
	}
}

// lookAtConsumers connects to the webhooks, or asks their health URLs.
func (d *doctor) lookAtConsumers(ctx context.Context) {
	const what = "consumer"
	for _, k := range d.cfg.Consumers {
		switch {
		case k.Webhook != nil:
			d.lookAtWebhook(ctx, k)
		case k.NATS != nil:
			d.ok(what, "%s: published on %s; that anybody listens can't be seen", k.Name, k.NATS.Subject)
		case k.Request != nil:
			d.ok(what, "%s: requests on %s; that anybody answers shows at the first", k.Name, k.Request.Subject)
		}
	}
}

func (d *doctor) lookAtWebhook(ctx context.Context, k config.Consumer) {
	const what = "consumer"
	target := k.Webhook.URL
	u, err := url.Parse(target.Reveal())
	if err != nil {
		d.fail(what, "", "%s: its url can't be read", k.Name)
		return
	}
	settings, err := tlsOf(k.Webhook, u.Hostname())
	if err != nil {
		d.fail(what, "correct ca, cert and key", "%s: %v", k.Name, err)
		return
	}
	took, address, err := d.dial(ctx, u, settings)
	if err != nil {
		d.fail(what, "start it, or correct its url, name and certificates; triggers are parked until then", "%s: %s can't be reached: %v", k.Name, target, err)
		return
	}
	if k.Webhook.Egress == config.EgressPublic && !egress.IsPublic(address) {
		d.fail(what, "correct the url, or set egress: any", "%s: %s is at %s, which egress: public forbids", k.Name, target, address)
		return
	}
	if took > k.Breaker.P99/2 {
		d.warn(what, "raise breaker.p99 to at least twice the ordinary P99 of a call", "%s: connecting alone took %v, and p99 is %v", k.Name, took.Round(time.Millisecond), k.Breaker.P99)
	}
	if k.Webhook.Health.IsZero() {
		d.ok(what, "%s: %s can be connected to, in %v", k.Name, target, took.Round(time.Microsecond))
		return
	}
	d.askHealth(ctx, k, settings)
}

// dial connects, with TLS where the URL says so, and closes again.
func (d *doctor) dial(ctx context.Context, u *url.URL, settings *tls.Config) (time.Duration, netip.Addr, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	begun := time.Now()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return 0, netip.Addr{}, err
	}
	defer conn.Close()
	if u.Scheme == "https" {
		if err := tls.Client(conn, settings).HandshakeContext(ctx); err != nil {
			return 0, netip.Addr{}, err
		}
	}
	took := time.Since(begun)
	address, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return 0, netip.Addr{}, errors.New("no TCP address")
	}
	return took, address.AddrPort().Addr().Unmap(), nil
}

func (d *doctor) askHealth(ctx context.Context, k config.Consumer, settings *tls.Config) {
	const what, do = "consumer", "see why, or correct webhook.health: while it fails, an open breaker waits its full window"
	ctx, cancel := d.within(ctx)
	defer cancel()
	health := k.Webhook.Health
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, health.Reveal(), nil)
	if err != nil {
		d.fail(what, do, "%s: %s is no URL", k.Name, health)
		return
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // the URL in it may hold a secret
		}
		d.warn(what, do, "%s: %s: %v", k.Name, health, err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		d.warn(what, do, "%s: %s answers %s", k.Name, health, resp.Status)
		return
	}
	d.ok(what, "%s: %s answers %s", k.Name, health, resp.Status)
}

// tlsOf is how the webhook sink would speak TLS.
func tlsOf(w *config.Webhook, host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if w.CA != "" {
		pem, err := os.ReadFile(w.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New(w.CA + " holds no certificate")
		}
	}
	if w.Cert != "" {
		pair, err := tls.LoadX509KeyPair(w.Cert, w.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

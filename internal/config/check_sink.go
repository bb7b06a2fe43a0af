package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/secret"
	"github.com/tripline/tripline/router/natssink"
	"github.com/tripline/tripline/router/webhook"
)

// checkSink checks the one sink of a consumer and fills in its timeout.
func checkSink(s *source, c *Config, in *ingest.Patterns, k *Consumer) {
	var set []string
	for name, is := range map[string]bool{"webhook": k.Webhook != nil, "nats": k.NATS != nil, "request": k.Request != nil, "jetstream": k.JetStream != nil} {
		if is {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	switch len(set) {
	case 0:
		s.add(k.Path, "%s has no sink: add one of webhook, nats, request, jetstream", k.Path)
		return
	case 1:
	default:
		s.add(k.Path, "%s has %s: a consumer has one sink; make a consumer for each", k.Path, strings.Join(set, " and "))
		return
	}
	path := k.Path.key(set[0])
	var timeout time.Duration
	switch {
	case k.Webhook != nil:
		timeout = k.Webhook.Timeout
		checkWebhook(s, k, path)
	case k.NATS != nil:
		timeout = k.NATS.Timeout
		checkSubject(s, c, in, path.key("subject"), k.NATS.Subject)
	case k.Request != nil:
		timeout = k.Request.Timeout
		checkSubject(s, c, in, path.key("subject"), k.Request.Subject)
		if k.Request.Health != "" {
			checkSubject(s, c, in, path.key("health"), k.Request.Health)
		}
	case k.JetStream != nil:
		timeout = k.JetStream.Timeout
		checkSubject(s, c, in, path.key("subject"), k.JetStream.Subject)
	}
	if timeout == 0 {
		timeout = 4 * k.Breaker.P99
	}
	if timeout < k.Breaker.P99 {
		s.add(path.key("timeout"), "%s.timeout (%s) must be at least breaker.p99 (%s): a call must be able to be slow before it times out", path, shortDuration(timeout), shortDuration(k.Breaker.P99))
	}
	k.Timeout = timeout
}

// reserved are the words after the namespace that Tripline listens to itself.
var reserved = []string{"submit", "tick", "loc", "fallback", "dead", "rejected"}

// checkSubject refuses what can't be published to, and what would come back
// as a location.
func checkSubject(s *source, c *Config, in *ingest.Patterns, path Path, subject string) {
	if subject == "" {
		s.add(path, "%s is missing", path)
		return
	}
	if err := (natssink.Config{Subject: subject, Consumer: "x", Namespace: c.NATS.Namespace}).Validate(); err != nil {
		s.add(path, "%s: %v", path, err)
		return
	}
	plain := strings.NewReplacer("{namespace}", c.NATS.Namespace, "{", "", "}", "").Replace(subject)
	tokens := strings.Split(plain, ".")
	if len(tokens) > 1 && tokens[0] == c.NATS.Namespace && slices.Contains(reserved, tokens[1]) || strings.HasPrefix(plain, "$") {
		s.add(path, "%s: subjects that begin with %s are taken: choose another one", path, strings.Join(tokens[:min(2, len(tokens))], "."))
	}
	if in == nil {
		return
	}
	if _, err := in.Device(plain); err == nil {
		s.add(path, "%s: what is published to %s would come back as a location (see ingest.subjects): choose another subject", path, subject)
	}
}

// checkWebhook holds each setting against the sink's own rules, one at a
// time, so that each has its place.
func checkWebhook(s *source, k *Consumer, path Path) {
	w := k.Webhook
	somewhere := webhook.Config{URL: "http://localhost"}
	test := func(at Path, what string, cfg webhook.Config) {
		if err := cfg.Validate(); err != nil {
			s.add(at, "%s%s", what, strings.TrimPrefix(err.Error(), "secrets[0]:"))
		}
	}
	if (webhook.Config{URL: w.URL.Reveal()}).Validate() != nil {
		s.hide(&node{text: w.URL.Reveal()}) // it can't be told where its secret is
	}
	test(path.key("url"), string(path)+".", webhook.Config{URL: w.URL.Reveal()})
	if !w.Health.IsZero() {
		cfg := somewhere
		cfg.Health = w.Health.Reveal()
		test(path.key("health"), string(path)+".", cfg)
	}
	for i, v := range w.Secrets {
		cfg, at := somewhere, path.key("secrets").index(i)
		cfg.Secrets = []secret.Value{v}
		test(at, string(at), cfg)
		if len(strings.TrimPrefix(string(v), "whsec_")) < 16 {
			s.warn(at, "%s is short and easy to guess; make one with: echo whsec_$(openssl rand -base64 32)", at)
		}
	}
	for name, v := range w.Headers {
		cfg, at := somewhere, path.key("headers").key(name)
		cfg.Header = map[string]secret.Value{name: v}
		test(at, string(path)+".headers: ", cfg)
	}
	checkKeyPair(s, path, w.Cert, w.Key)
	for key, file := range map[string]string{"ca": w.CA, "cert": w.Cert, "key": w.Key} {
		checkFile(s, path.key(key), file)
	}
	cfg := somewhere
	cfg.TLS = webhook.TLS{CA: w.CA, Cert: w.Cert, Key: w.Key}
	if w.CA != "" || w.Cert != "" {
		test(path, string(path)+": ", cfg)
	}
	warnWebhook(s, k, path)
}

// warnWebhook tells of defaults that are rarely right.
func warnWebhook(s *source, k *Consumer, path Path) {
	if !s.has(k.Path.key("breaker.p99")) {
		s.warn(path, "%s has no breaker.p99: more than 1 %% of calls above %s trip its breaker; set it to at least twice the endpoint's ordinary P99", k.Path, shortDuration(k.Breaker.P99))
	}
	if !s.has(path.key("egress")) && !private(k.Webhook.URL) {
		s.warn(path, "%s may be sent to private addresses, whatever its name resolves to: write egress: public to forbid that, or egress: any if it is meant", path)
	}
}

// private says that an address is written as one that is plainly meant to be
// on this machine or network.
func private(u URL) bool {
	p, err := url.Parse(u.Reveal())
	if err != nil {
		return true // reported elsewhere
	}
	host := p.Hostname()
	if host == "localhost" || !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}

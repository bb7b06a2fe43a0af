package config

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/secret"
)

func checkConsumers(s *source, c *Config) {
	seen := map[string]Path{}
	for i := range c.Consumers {
		k := &c.Consumers[i]
		if !nameRule.MatchString(k.Name) {
			if k.Name == "" {
				s.add(k.Path.key("name"), "%s has no name: add name: NAME", k.Path)
			} else {
				s.add(k.Path.key("name"), "%s.name %s, not %q", k.Path, nameWords, k.Name)
			}
		} else if first, dup := seen[k.Name]; dup {
			s.add(k.Path.key("name"), "%s.name %q is taken by %s: names are unique", k.Path, k.Name, first)
		} else {
			seen[k.Name] = k.Path
		}
		checkMatch(s, c, k)
		checkBreaker(s, k)
		checkSink(s, c, k)
	}
}

func checkMatch(s *source, c *Config, k *Consumer) {
	if len(k.Match) == 0 {
		all := Match{Path: k.Path.key("match")}
		decoder{s}.defaultsOf(&all)
		k.Match = []Match{all}
	}
	for _, m := range k.Match {
		if len(m.Transitions) == 0 {
			s.add(m.Path.key("transitions"), "%s.transitions is empty, so nothing matches: list some of enter, exit, dwell, cross, inside, silent, or leave the key out", m.Path)
		}
		if slices.Contains(m.Transitions, "silent") && c.Tracking.SilentAfter == 0 {
			s.warn(m.Path.key("transitions"), "silent is never told: set tracking.silent_after")
		}
		for name, globs := range map[string][]string{"fences": m.Fences, "tags": m.Tags, "devices": m.Devices} {
			for i, g := range globs {
				if strings.TrimSpace(g) == "" {
					path := m.Path.key(name).index(i)
					s.add(path, "%s is empty: write * for all, or remove it", path)
				}
			}
		}
	}
}

func checkBreaker(s *source, k *Consumer) {
	b, path := k.Breaker, k.Path.key("breaker")
	if b.Max < b.Base {
		s.add(path.key("max"), "%s.max (%s) must be at least %s.base (%s)", path, shortDuration(b.Max), path, shortDuration(b.Base))
	}
	if k.Fallback.MaxBytes > 0 && k.Fallback.MaxBytes < 64<<10 {
		p := k.Path.key("fallback.max_bytes")
		s.add(p, "%s must be at least 64KiB, not %s", p, k.Fallback.MaxBytes)
	}
}

// checkSink checks the one sink of a consumer and fills in its timeout.
func checkSink(s *source, c *Config, k *Consumer) {
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
		checkSubject(s, c, path.key("subject"), k.NATS.Subject)
	case k.Request != nil:
		timeout = k.Request.Timeout
		checkSubject(s, c, path.key("subject"), k.Request.Subject)
		if k.Request.Health != "" {
			checkSubject(s, c, path.key("health"), k.Request.Health)
		}
	case k.JetStream != nil:
		timeout = k.JetStream.Timeout
		checkSubject(s, c, path.key("subject"), k.JetStream.Subject)
	}
	if timeout == 0 {
		timeout = 4 * k.Breaker.P99
	}
	if timeout < k.Breaker.P99 {
		s.add(path.key("timeout"), "%s.timeout (%s) must be at least breaker.p99 (%s): a call must be able to be slow before it times out", path, shortDuration(timeout), shortDuration(k.Breaker.P99))
	}
	k.Timeout = timeout
}

// checkSubject refuses what can't be published to, and what would come back
// as a location.
func checkSubject(s *source, c *Config, path Path, subject string) {
	if subject == "" {
		s.add(path, "%s is missing", path)
		return
	}
	tokens := strings.Split(subject, ".")
	for _, t := range tokens {
		if !tokenRule.MatchString(t) {
			s.add(path, "%s: %q can't be published to: parts are separated by single dots and hold neither white space nor wildcards", path, subject)
			return
		}
	}
	if tokens[0] == c.NATS.Namespace || strings.HasPrefix(subject, "$") {
		s.add(path, "%s: subjects that begin with %s. are not for consumers", path, tokens[0])
	}
	for _, in := range c.Ingest.Subjects {
		if overlap(in, subject) {
			s.add(path, "%s: %s would come back as a location (ingest.subjects has %s): choose another subject", path, subject, in)
		}
	}
}

func checkWebhook(s *source, k *Consumer, path Path) {
	w := k.Webhook
	if w.URL.IsZero() {
		if !s.has(path.key("url")) {
			s.add(path, "%s.url is missing", path)
		}
	} else {
		checkURL(s, path.key("url"), w.URL, "http", "https")
	}
	if !w.Health.IsZero() {
		checkURL(s, path.key("health"), w.Health, "http", "https")
	}
	checkKeyPair(s, path, w.Cert, w.Key)
	for key, file := range map[string]string{"ca": w.CA, "cert": w.Cert, "key": w.Key} {
		checkFile(s, path.key(key), file)
	}
	for i, v := range w.Secrets {
		raw := strings.TrimPrefix(string(v), "whsec_")
		if key, err := base64.StdEncoding.DecodeString(raw); raw != "" && (err != nil || len(key) < 16) {
			p := path.key("secrets").index(i)
			s.add(p, "%s must be at least 16 bytes in base64, with or without whsec_ before it; make one with: openssl rand -base64 32", p)
		}
	}
	checkHeaders(s, path.key("headers"), w.Headers)
	if !s.has(k.Path.key("breaker.p99")) {
		s.warn(path, "%s has no breaker.p99: more than 1 %% of calls above %s trip its breaker; set it to at least twice the endpoint's ordinary P99", k.Path, shortDuration(k.Breaker.P99))
	}
	if !s.has(path.key("egress")) && !private(w.URL) {
		s.warn(path, "%s may be sent to private addresses, whatever its name resolves to: write egress: public to forbid that, or egress: any if it is meant", path)
	}
}

// ownHeaders are set by Tripline for each delivery.
var ownHeaders = []string{"Content-Type", "Content-Length", "Host", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Traceparent", "Transfer-Encoding", "Connection"}

func checkHeaders(s *source, path Path, headers map[string]secret.Value) {
	for name, value := range headers {
		at := path.key(name)
		switch {
		case !headerName(name):
			s.add(at, "%s: %q is no HTTP header name", path, name)
		case slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)):
			s.add(at, "%s: %s is set by Tripline itself", path, name)
		case strings.ContainsAny(string(value), "\r\n\x00"):
			s.add(at, "%s holds a line break", at)
		}
	}
}

func headerName(name string) bool {
	if name == "" {
		return false
	}
	h := http.Header{}
	h.Set(name, "")
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func checkURL(s *source, path Path, u URL, schemes ...string) {
	for one := range strings.SplitSeq(u.Reveal(), ",") {
		p, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil, p.Host == "", !slices.Contains(schemes, p.Scheme):
			// The address itself may hold a secret: it isn't repeated.
			s.add(path, "%s must be an address that begins with %s://", path, strings.Join(schemes, ":// or "))
			return
		}
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

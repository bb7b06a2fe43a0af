package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tripline/tripline/internal/admin/page"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
)

// check holds the rules that need more than one value, or more than a range.
func check(s *source, c *Config) {
	checkNATS(s, &c.NATS)
	patterns := checkIngest(s, c)
	checkTracking(s, c.Tracking)
	checkFences(s, c.Fences)
	checkConsumers(s, c, patterns)
	checkAdmin(s, c.Admin)
	if c.NATS.MaxStore > 0 && len(s.problems) == 0 {
		if _, err := c.Budget(c.NATS.MaxStore); err != nil {
			s.add("nats.max_store", "%v", err)
		}
	}
	if len(c.Fences) == 0 {
		s.warn("fences", "no fences: nothing can be entered; add a file (fences: [{file: city.geojson}]) or the bucket ({kv: true})")
	}
	if len(c.Consumers) == 0 {
		s.warn("consumers", "no consumers: transitions go nowhere")
	}
}

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

const nameWords = "must be 1 to 32 of a-z, 0-9, _ and -, and begin with a letter or digit"

func checkNATS(s *source, n *NATS) {
	if !nameRule.MatchString(n.Namespace) {
		s.add("nats.namespace", "nats.namespace %s, not %q", nameWords, n.Namespace)
	}
	if n.URL.IsZero() && !s.has("nats.url") {
		if u, ok := s.env("NATS_URL"); ok && u != "" {
			n.URL = NewURL(u)
		}
	}
	if !n.URL.IsZero() {
		checkURL(s, "nats.url", n.URL, "nats", "tls", "ws", "wss")
	}
	ways := 0
	for _, set := range []bool{n.Creds != "", n.NKey != "", n.User != "" || n.Password != "", n.Token != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		s.add("nats", "nats: give one of creds, nkey, user with password, and token")
	}
	if (n.User == "") != (n.Password == "") {
		s.add("nats", "nats.user and nats.password go together")
	}
	checkKeyPair(s, "nats.tls", n.TLS.Cert, n.TLS.Key)
	checkNATSFiles(s, n)
	if n.Replicas%2 == 0 && n.Replicas > 0 {
		s.add("nats.replicas", "nats.replicas %d: an even number survives the loss of no more servers than the odd one below it; set %d", n.Replicas, n.Replicas-1)
	}
	if n.Embedded() {
		if n.Replicas > 1 {
			s.add("nats.replicas", "nats.replicas %d needs a cluster: set nats.url to its servers; the embedded server is one", n.Replicas)
		}
		checkEmbedded(s, n)
		return
	}
	for _, key := range []Path{"nats.store_dir", "nats.listen", "nats.mqtt_listen", "nats.sync"} {
		if s.has(key) {
			s.warn(key, "%s is for the embedded server and does nothing, because a NATS URL is set", key)
		}
	}
}

// nkeySeed finds a seed where the name of its file belongs; the folder of the
// configuration stands before it by then.
var nkeySeed = regexp.MustCompile(`(^|[/\\])S[A-Z2-7]{50,}$`)

// checkNATSFiles reads the files that a connection takes, each for itself, so
// that what is wrong with one is told at its key.
func checkNATSFiles(s *source, n *NATS) {
	if nkeySeed.MatchString(n.NKey) {
		s.add("nats.nkey", "nats.nkey is the seed itself: write it into a file that only Tripline may read, and name that")
	}
	for _, f := range []struct{ key, path string }{
		{"creds", n.Creds}, {"nkey", n.NKey}, {"tls.ca", n.TLS.CA}, {"tls.cert", n.TLS.Cert}, {"tls.key", n.TLS.Key},
	} {
		checkFile(s, Path("nats."+f.key), f.path)
	}
	if n.Embedded() || len(s.problems) > 0 {
		return // it takes none, or what is not there can't be read
	}
	for _, f := range []struct {
		key    Path
		reader natsconn.Config
	}{
		{"nats.creds", natsconn.Config{Creds: n.Creds}},
		{"nats.nkey", natsconn.Config{NKey: n.NKey}},
		{"nats.tls.ca", natsconn.Config{CA: n.TLS.CA}},
		{"nats.tls.cert", natsconn.Config{Cert: n.TLS.Cert, Key: n.TLS.Key}},
	} {
		if err := f.reader.Validate(); err != nil {
			s.add(f.key, "%s: %v", f.key, err)
		}
	}
}

func checkEmbedded(s *source, n *NATS) {
	for key, value := range map[Path]string{
		"nats.creds": n.Creds, "nats.nkey": n.NKey, "nats.tls.ca": n.TLS.CA, "nats.tls.cert": n.TLS.Cert,
	} {
		if value != "" {
			s.add(key, "%s is for an external server: set nats.url; the embedded one has no TLS, and takes user and password, or token", key)
		}
	}
	open := n.User == "" && n.Token == ""
	for key, addr := range map[Path]string{"nats.listen": n.Listen, "nats.mqtt_listen": n.MQTTListen} {
		if addr == "" {
			continue
		}
		if checkListen(s, key, addr) && open && !loopback(addr) {
			s.add(key, "%s is reachable from other machines: set nats.user and nats.password, or nats.token, or listen on 127.0.0.1", key)
		}
	}
}

func checkKeyPair(s *source, path Path, cert, key string) {
	if (cert == "") != (key == "") {
		s.add(path, "%s.cert and %s.key go together", path, path)
	}
}

func checkFile(s *source, path Path, file string) {
	if file == "" {
		return
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		s.add(path, "%s: %v (relative paths start at the folder of this file)", path, err)
		return
	case info.IsDir():
		s.add(path, "%s: %s is a folder, not a file", path, file)
		return
	}
	f, err := os.Open(file)
	if err != nil {
		s.add(path, "%s: %v: let the user that Tripline runs as read it", path, err)
		return
	}
	_ = f.Close()
}

// checkListen reports an address that can't be listened on.
func checkListen(s *source, path Path, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		var n int
		if n, err = strconv.Atoi(port); err == nil && (n < 0 || n > 65535) {
			err = fmt.Errorf("no such port")
		}
	}
	if err != nil {
		s.add(path, "%s must be HOST:PORT, as in 127.0.0.1:8080, not %q", path, addr)
		return false
	}
	return true
}

// loopback says that only this machine reaches an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func checkTracking(s *source, t Tracking) {
	for i, d := range t.Dwell {
		path := Path("tracking.dwell").index(i)
		if d <= 0 {
			s.add(path, "%s must be longer than 0", path)
		}
		if slices.Contains(t.Dwell[:i], d) {
			s.add(path, "%s: %s is listed twice", path, shortDuration(d))
		}
		if t.ForgetAfter > 0 && d >= t.ForgetAfter {
			s.warn(path, "a dwell of %s is never told to a parked device: tracking.forget_after (%s) drops it first", shortDuration(d), shortDuration(t.ForgetAfter))
		}
	}
	if t.ForgetAfter > 0 && t.SilentAfter >= t.ForgetAfter {
		s.add("tracking.forget_after", "tracking.forget_after (%s) must be longer than tracking.silent_after (%s)", shortDuration(t.ForgetAfter), shortDuration(t.SilentAfter))
	}
}

func checkFences(s *source, fences []FenceSource) {
	seen := map[FenceSource]Path{}
	for _, f := range fences {
		path := f.Path
		if (f.File != "") == f.KV {
			s.add(path, "%s must have either file: PATH or kv: true", path)
			continue
		}
		f.Path = ""
		if first, dup := seen[f]; dup {
			s.add(path, "%s is the same as %s: remove one of them", path, first)
			continue
		}
		seen[f] = path
		checkFile(s, path.key("file"), f.File)
	}
}

func checkAdmin(s *source, a Admin) {
	if checkListen(s, "admin.listen", a.Listen) && a.Token == "" && !loopback(a.Listen) {
		s.add("admin.listen", "admin.listen %s is reachable from other machines: set admin.token (as in token: env:TRIPLINE_ADMIN_TOKEN), or listen on 127.0.0.1", a.Listen)
	}
	if _, err := page.TileOrigin(a.Tiles.URL); err != nil {
		s.add("admin.tiles.url", "admin.tiles.url %v", err)
	}
	if a.Tiles.URL == "" && a.Tiles.Credit != "" {
		s.warn("admin.tiles.credit", "admin.tiles.credit is shown only with admin.tiles.url")
	}
}

// checkIngest holds the subjects against the rules for naming devices. The
// patterns are nil when one of them is wrong.
func checkIngest(s *source, c *Config) *ingest.Patterns {
	namespace := c.NATS.Namespace
	if !nameRule.MatchString(namespace) {
		namespace = "tripline" // it is reported already
	}
	patterns, err := ingest.ParsePatterns(namespace, c.Ingest.Subjects)
	if err == nil {
		return patterns
	}
	for _, err := range flatten(err) {
		path, msg := Path("ingest.subjects"), err.Error()
		if bad, ok := errors.AsType[*ingest.PatternError](err); ok {
			path = path.index(bad.Index)
		}
		s.add(path, "%s: %s", path, msg)
	}
	return nil
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func checkURL(s *source, path Path, u URL, schemes ...string) {
	for one := range strings.SplitSeq(u.Reveal(), ",") {
		p, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil, p.Host == "", !slices.Contains(schemes, p.Scheme):
			s.hide(&node{text: u.Reveal()}) // it may hold a secret
			s.add(path, "%s must be an address that begins with %s://", path, strings.Join(schemes, ":// or "))
			return
		}
	}
}

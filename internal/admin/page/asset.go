package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// asset is one file of the page.
type asset struct {
	body   []byte
	kind   string // content type
	tag    string // entity tag of the plain form; that of the gzip form differs
	rules  rules
	zipped func() []byte // made at the first request that wants it
}

// rules are the headers that tell a browser what the page may do.
type rules struct{ policy, referrer string }

func newAsset(name string, body []byte, rules rules) *asset {
	sum := sha256.Sum256(body)
	return &asset{
		body:   body,
		kind:   contentType(name),
		tag:    hex.EncodeToString(sum[:12]),
		rules:  rules,
		zipped: sync.OnceValue(func() []byte { return compress(body) }),
	}
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Security-Policy", a.rules.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", a.rules.referrer)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// The tag decides, at every load: an upgrade shows at once.
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")

	body, tag := a.body, `"`+a.tag+`"`
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = a.zipped(), `"`+a.tag+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if matches(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// acceptsGzip understands what browsers and tools send: a list of codings,
// each with an optional weight, of which 0 means no.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, weight, weighted := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		return err == nil && q > 0
	}
	return false
}

func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	w.Write(body)
	w.Close()
	return out.Bytes()
}

// contentType is that of the page's few kinds of file. The system's own table
// of types may say anything.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json":
		return "application/json"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

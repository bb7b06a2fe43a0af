package page_test

import (
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tripline/tripline/internal/admin/page"
)

func handler(t *testing.T, o page.Options) http.Handler {
	t.Helper()
	h, err := page.Handler(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, header http.Header) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryFileIsServedWithItsTypeAndAStrictPolicy(t *testing.T) {
	h := handler(t, page.Options{})
	types := map[string]string{
		"/":                  "text/html; charset=utf-8",
		"/page/app.js":       "text/javascript; charset=utf-8",
		"/page/style.css":    "text/css; charset=utf-8",
		"/page/icon.svg":     "image/svg+xml",
		"/page/world.json":   "application/json",
		"/page/licenses.txt": "text/plain; charset=utf-8",
	}
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for path, kind := range types {
		r := get(h, path, nil)
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != kind {
			t.Errorf("%s: status %d, type %q; want 200 and %q", path, r.StatusCode, r.Header.Get("Content-Type"), kind)
		}
		if got := r.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s: policy %q\nwant %q", path, got, policy)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, r.Header)
		}
		if len(read(t, r.Body)) == 0 {
			t.Errorf("%s is empty", path)
		}
	}
	for _, path := range []string{"/page/", "/page/nothing.js", "/page/../page.go", "/other"} {
		if r := get(h, path, nil); r.StatusCode == http.StatusOK {
			t.Errorf("%s: status 200", path)
		}
	}
}

func TestNothingInThePageNeedsAnotherHostOrAHoleInThePolicy(t *testing.T) {
	index := read(t, get(handler(t, page.Options{}), "/", nil).Body)
	for what, pattern := range map[string]string{
		"an inline script":  `<script(?:\s[^>]*)?>[^<]`,
		"an inline style":   `<style|\sstyle=`,
		"an inline handler": `\son[a-z]+=`,
		"another host":      `(?:src|href)="(?:https?:)?//`,
	} {
		if found := regexp.MustCompile(pattern).FindString(index); found != "" {
			t.Errorf("the page has %s: %q", what, found)
		}
	}
	style := read(t, get(handler(t, page.Options{}), "/page/style.css", nil).Body)
	if found := regexp.MustCompile(`url\((?:"|')?https?:[^)]*|@import[^;]*`).FindString(style); found != "" {
		t.Errorf("the style sheet asks for %q", found)
	}
}

func TestABrowserThatHasAFileIsNotSentItAgain(t *testing.T) {
	h := handler(t, page.Options{})
	plain := get(h, "/page/app.js", nil)
	zipped := get(h, "/page/app.js", http.Header{"Accept-Encoding": {"br, gzip;q=0.8"}})
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("headers %v; want gzip", zipped.Header)
	}
	unzipped, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, unzipped) != read(t, plain.Body) {
		t.Error("the gzip form has other content")
	}
	if plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("two forms have one tag")
	}
	again := get(h, "/page/app.js", http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {`"other", W/` + zipped.Header.Get("ETag")}})
	if again.StatusCode != http.StatusNotModified || read(t, again.Body) != "" || again.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("status %d, headers %v; want 304 with the policy", again.StatusCode, again.Header)
	}
	refused := get(h, "/page/app.js", http.Header{"Accept-Encoding": {"gzip;q=0"}})
	if refused.Header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to a client that refuses it")
	}
}

func TestATileURLOpensThePolicyForItsHostAlone(t *testing.T) {
	const without = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:%s; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for url, want := range map[string]struct{ hole, referrer, credit string }{
		"https://tiles.example:8443/a/{z}/{x}/{y}.png?k=1&l=2": {" https://tiles.example:8443", "strict-origin", "© &lt;Map&gt; makers"},
		"http://tiles.example/{z}/{y}/{x}":                     {" http://tiles.example", "strict-origin", "Map tiles http://tiles.example"},
		"/tiles/{z}/{x}/{y}.webp":                              {"", "no-referrer", "Map tiles"},
	} {
		options := page.Options{TileURL: url}
		if strings.HasPrefix(want.credit, "©") {
			options.TileCredit = "© <Map> makers"
		}
		r := get(handler(t, options), "/", nil)
		if got := r.Header.Get("Content-Security-Policy"); got != fmt.Sprintf(without, want.hole) {
			t.Errorf("%s: policy %q; want %q among the images and nothing else", url, got, want.hole)
		}
		if got := r.Header.Get("Referrer-Policy"); got != want.referrer {
			t.Errorf("%s: Referrer-Policy %q; want %q", url, got, want.referrer)
		}
		index := read(t, r.Body)
		if !strings.Contains(index, `data-tiles="`+html.EscapeString(url)+`"`) || !strings.Contains(index, ">"+want.credit+" · Natural Earth<") {
			t.Errorf("%s: the page has neither tiles nor credit: %.300s", url, index)
		}
	}
}

func TestATileURLThatCanNotWorkIsRefused(t *testing.T) {
	for bad, want := range map[string]string{
		"https://tiles.example/{z}/{x}.png":                "has no {y}",
		"tiles.example/{z}/{x}/{y}":                        "not an address of tiles",
		"//tiles.example/{z}/{x}/{y}":                      "not an address of tiles",
		"javascript:{z}{x}{y}":                             "not an address of tiles",
		"https:///{z}/{x}/{y}":                             "not an address of tiles",
		"https://a.example; script-src *//{z}/{x}/{y}":     "not a URL",
		"https://*.example/{z}/{x}/{y}":                    "not an address of tiles",
		"https://{s}.example/{z}/{x}/{y}.png":              "nothing is put in place of {s}",
		"https://tiles.example/{z}/{x}/{y}{r}.png":         "nothing is put in place of {r}",
		"https://ann:secret@tiles.example/{z}/{x}/{y}.png": "holds a user name",
	} {
		if _, err := page.TileOrigin(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want that it %s", bad, err, want)
		}
		if _, err := page.Handler(page.Options{TileURL: bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// node finds what the source is built with, or skips the test.
func node(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("web/node_modules"); err != nil {
		t.Skip("no web/node_modules: run `npm ci` in web/ to test the page's source")
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node to test the page's source with")
	}
	return path
}

func TestTheSourcesTypesAndTests(t *testing.T) {
	node := node(t)
	for _, args := range [][]string{{"web/node_modules/typescript/bin/tsc", "--project", "web", "--noEmit"}, {"web/test.mjs"}} {
		if out, err := exec.Command(node, args...).CombinedOutput(); err != nil {
			t.Errorf("node %v: %v\n%s", args, err, out)
		}
	}
}

// The committed result is what the source builds.
func TestDistIsWhatTheSourceBuilds(t *testing.T) {
	node := node(t)
	fresh := filepath.Join(t.TempDir(), "dist")
	if out, err := exec.Command(node, "web/build.mjs", fresh).CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	built, committed := files(t, fresh), files(t, "dist")
	for name, body := range built {
		if committed[name] != body {
			t.Errorf("dist/%s isn't what the source builds: run `npm run build` in web/ and commit dist", name)
		}
	}
	if len(built) != len(committed) {
		t.Errorf("dist has %d files, a fresh build %d", len(committed), len(built))
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

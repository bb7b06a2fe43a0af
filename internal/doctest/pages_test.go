package doctest_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/config"
)

// env gives every variable that a page's configuration may name a value.
func env(name string) (string, bool) {
	return "whsec_dGhpcyBpcyBhbiBleGFtcGxlOiBtYWtlIHlvdXIgb3duIQ==", name != "NATS_URL"
}

// Each yaml block that is a configuration, or a part of one, is accepted.
// Blocks for other programs say so with another word after the language.
func TestConfigurationsAreAccepted(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, b := range configurations(p) {
			n++
			// Files that it names needn't be there.
			text := regexp.MustCompile(`\bfile: [\w./-]+\.geojson`).ReplaceAllString(b.text, "file: examples/city.geojson")
			text = regexp.MustCompile(`file:[\w./-]+`).ReplaceAllString(text, "env:SECRET")
			if !strings.Contains(text, "consumers:") {
				text += "\nconsumers: [{name: other, nats: {subject: x}}]\n"
			}
			if !strings.Contains(text, "fences:") || !strings.Contains(text, "file:") && !strings.Contains(text, "kv:") {
				text += "\nfences: [{file: examples/city.geojson}]\n"
			}
			cfg, err := config.Parse(p.at(b.line), []byte(text), config.WithEnv(env), config.WithDir(root))
			if err != nil {
				t.Errorf("%s:\n%s\n%v", p.at(b.line), b.text, err)
				continue
			}
			for _, w := range cfg.Warnings {
				if !strings.Contains(w.Error(), "p99") { // left out where it isn't the point
					t.Errorf("%s: %v", p.at(b.line), w)
				}
			}
		}
	}
	if n < 6 {
		t.Errorf("only %d configurations found", n)
	}
}

// configurations are the yaml blocks, and the here-documents named *.yaml.
func configurations(p page) []block {
	here := regexp.MustCompile(`(?s)cat > \S+\.yaml <<'EOF'\n(.*?)\nEOF\n`)
	var found []block
	for _, b := range p.blocks {
		switch {
		case b.lang == "yaml" && len(b.info) == 0:
			found = append(found, b)
		case b.lang == "sh":
			for _, m := range here.FindAllStringSubmatch(b.text, -1) {
				found = append(found, block{line: b.line, lang: "yaml", text: m[1]})
			}
		}
	}
	return found
}

// Each json block is JSON, and each geojson block can be loaded as fences.
func TestJSONIsJSON(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.lang {
			case "json":
				if !json.Valid([]byte(b.text)) {
					t.Errorf("%s: this is no JSON:\n%s", p.at(b.line), b.text)
				}
			case "geojson":
				if _, err := geofence.ParseFences([]byte(b.text)); err != nil {
					t.Errorf("%s: %v", p.at(b.line), err)
				}
			}
		}
	}
}

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)|<(https?://[^>\s]+)>`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	drop    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that GitHub gives a page's headings.
func anchors(p page) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(p.prose, -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		found[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
	}
	return found
}

// Each link inside the repository leads to a file, and to a heading in it.
func TestLinksResolve(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatchIndex(p.prose, -1) {
			if m[2] < 0 {
				continue
			}
			n++
			line := 1 + strings.Count(p.prose[:m[0]], "\n")
			checkLink(t, p, line, p.prose[m[2]:m[3]])
		}
	}
	if n < 30 {
		t.Errorf("only %d links found", n)
	}
}

func checkLink(t *testing.T, p page, line int, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Errorf("%s: %v", p.at(line), err)
		return
	}
	if u.Scheme != "" {
		if u.Scheme != "https" && u.Hostname() != "127.0.0.1" {
			t.Errorf("%s: %s: links are https", p.at(line), target)
		}
		return
	}
	to := p.path
	if u.Path != "" {
		to = path.Join(path.Dir(p.path), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		t.Errorf("%s links to %s, which isn't there", p.at(line), target)
		return
	}
	if u.Fragment != "" && strings.HasSuffix(to, ".md") && !anchors(read(t, to))[u.Fragment] {
		t.Errorf("%s links to %s, and that page has no such heading", p.at(line), target)
	}
}

// Every page under docs can be reached from the README or from a page that it
// links to.
func TestPagesAreLinked(t *testing.T) {
	linked := map[string]bool{}
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to != "" && !strings.Contains(to, "://") {
				linked[path.Join(path.Dir(p.path), to)] = true
			}
		}
	}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/") && !linked[p.path] {
			t.Errorf("no page links to %s", p.path)
		}
	}
}

// A configuration's key that a page names in a sentence, such as
// `fallback.on_full`, is one: docs/reference.yaml has them all.
func TestKeysExist(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/reference.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	keysOf(tree, "", known)
	form := regexp.MustCompile(`^((?:nats|ingest|tracking|admin|log|breaker|fallback|webhook|match)\.[a-z0-9_.]+)(?::.*)?$`)
	n := 0
	for _, p := range pages(t) {
		for _, s := range p.spans() {
			m := form.FindStringSubmatch(s.text)
			if m == nil || regexp.MustCompile(`\.(go|conf|md|svg)$`).MatchString(m[1]) {
				continue
			}
			n++
			if !known[m[1]] {
				t.Errorf("%s names the key %s, and there is none", p.at(s.line), m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d keys found", n)
	}
}

// keysOf gathers the paths of all keys; those of a consumer stand alone.
func keysOf(v any, path string, known map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, below := range v {
			p := strings.TrimPrefix(path+"."+k, ".")
			known[p] = true
			keysOf(below, p, known)
		}
	case []any:
		for _, below := range v {
			keysOf(below, strings.TrimPrefix(path, "consumers"), known)
		}
	}
}

// routes are the patterns that the admin server serves.
func routes(t *testing.T) []string {
	t.Helper()
	form := regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /[^"]*)"`)
	var found []string
	for _, pattern := range []string{"internal/app/*.go", "internal/admin/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range form.FindAllStringSubmatch(string(data), -1) {
				found = append(found, m[1])
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d routes found", len(found))
	}
	return found
}

// Addresses of the admin server in the pages are ones that it serves.
func TestAdminAddressesExist(t *testing.T) {
	mux := http.NewServeMux()
	for _, r := range routes(t) {
		mux.HandleFunc(r, func(http.ResponseWriter, *http.Request) {})
	}
	form := regexp.MustCompile(`(?:(POST|PUT|DELETE) )?http://127\.0\.0\.1:8080(/[\w/.-]*)`)
	for _, p := range pages(t) {
		for _, m := range form.FindAllStringSubmatch(p.text, -1) {
			method := cmp.Or(m[1], "GET")
			_, pattern := mux.Handler(httptest.NewRequest(method, m[2], nil))
			if pattern == "" {
				t.Errorf("%s: nothing answers %s %s", p.path, method, m[2])
			}
		}
	}
}

// docs/API.md names each request that the admin server answers, in full, and
// no other.
func TestAPIPageIsComplete(t *testing.T) {
	const page = "docs/API.md"
	data, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:GET|POST|PUT|DELETE) /[^` ?]*)`").FindAllStringSubmatch(string(data), -1) {
		documented[m[1]] = true
	}
	delete(documented, "GET /page/...") // the live page's files are no requests of the API
	served := map[string]bool{}
	for _, r := range routes(t) {
		r = strings.TrimSuffix(r, "{$}")
		if r == "GET /page/" {
			continue
		}
		served[r] = true
		if !documented[r] {
			t.Errorf("%s does not tell of %s", page, r)
		}
	}
	for r := range documented {
		if !served[r] {
			t.Errorf("%s tells of %s, which nothing answers", page, r)
		}
	}
}

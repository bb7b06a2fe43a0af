package doctest_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/metrics"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const reference = "docs/metrics.md"

// metric is one family as the code declares it.
type metric struct {
	name, kind, help string
	labels           []string
}

// declared reads all families from the source: each is declared by one call
// with literal arguments, of a method or function named in kinds.
func declared(t *testing.T) []metric {
	t.Helper()
	kinds := map[string]string{"counter": "counter", "histogram": "histogram", "describe": "gauge"}
	var found []metric
	for _, dir := range []string{"internal/metrics", "internal/app"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && kinds[callee(call)] != "" {
					if m, ok := metricOf(call); ok {
						m.kind = kinds[callee(call)]
						found = append(found, m)
					}
				}
				return true
			})
		}
	}
	slices.SortFunc(found, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return found
}

func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// metricOf takes the literal strings of a call: name, help, labels. A call
// with other arguments in front declares none.
func metricOf(call *ast.CallExpr) (m metric, ok bool) {
	var words []string
	for i, arg := range call.Args {
		lit, isLit := arg.(*ast.BasicLit)
		if !isLit || lit.Kind != token.STRING {
			if i < 2 {
				return metric{}, false
			}
			continue // buckets
		}
		word, err := strconv.Unquote(lit.Value)
		if err != nil {
			return metric{}, false
		}
		words = append(words, word)
	}
	if len(words) < 2 {
		return metric{}, false
	}
	return metric{name: "tripline_" + words[0], help: words[1], labels: words[2:]}, true
}

// What is read from the source is what the registry holds.
func TestMetricsAreReadFromTheSource(t *testing.T) {
	read := map[string]metric{}
	for _, m := range declared(t) {
		if _, twice := read[m.name]; twice {
			t.Errorf("%s is declared twice", m.name)
		}
		read[m.name] = m
	}
	described := make(chan *prometheus.Desc)
	go func() {
		metrics.New().Registry().Describe(described)
		close(described)
	}()
	form := regexp.MustCompile(`fqName: "(tripline_[a-z_]+)", help: (".*"), unit: .*constLabels: .*variableLabels: \{([a-z,]*)\}`)
	n := 0
	for d := range described {
		f := form.FindStringSubmatch(d.String())
		if f == nil {
			continue // of Go and the process
		}
		n++
		m, ok := read[f[1]]
		if !ok {
			t.Errorf("%s is registered and was not found in the source", f[1])
			continue
		}
		if help, err := strconv.Unquote(f[2]); err != nil || help != m.help || f[3] != strings.Join(m.labels, ",") {
			t.Errorf("%s: registered with %q and {%s}, read as %q and %v", f[1], help, f[3], m.help, m.labels)
		}
	}
	if n < 15 {
		t.Fatalf("only %d metrics in the registry", n)
	}
}

// docs/metrics.md is what the code says: go test ./internal/doctest -run Metrics -update
func TestMetricsReference(t *testing.T) {
	want := metricsPage(declared(t))
	path := filepath.Join(root, reference)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the code says; write it anew: go test ./internal/doctest -run MetricsReference -update", reference)
	}
}

func metricsPage(all []metric) string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Written by go test ./internal/doctest -run MetricsReference -update; a test holds it in step with the code. -->

At ` + "`/metrics` of `admin.listen`" + `, in the text formats of Prometheus and OpenMetrics. No label ever carries a device or a fence. Beside these
there are the usual ones of Go and of the process (` + "`go_*`, `process_*`" + `).

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`)
	for _, m := range all {
		labels := make([]string, len(m.labels))
		for i, l := range m.labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), m.help)
	}
	b.WriteString("\n## Values of labels\n\n| label | of | values |\n| --- | --- | --- |\n")
	for _, l := range labelValues() {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", l.label, l.of, strings.Join(l.values, "`, `"))
	}
	b.WriteString("\n`consumer` is its name in the configuration, `partition` a number from 0, `stream` the stream's name in NATS.\n")
	return b.String()
}

type values struct {
	label, of string
	values    []string
}

// labelValues are taken from the packages that give them.
func labelValues() []values {
	results := names(geofence.Teleport, geofence.Result.String)
	for _, r := range []ingest.Reason{ingest.Malformed, ingest.Missing, ingest.Range, ingest.Timestamp, ingest.Oversized, ingest.Encoding, ingest.Device, ingest.Encrypted} {
		results = append(results, string(r))
	}
	results = append(results, "ignored", "dropped")
	return []values{
		{"result", "`tripline_fixes_total`", results},
		{"transition", "`tripline_transitions_total`", names(geofence.Silent, geofence.Kind.String)},
		{"outcome", "`tripline_deliveries_total`", texts(fallback.OutcomeOK, fallback.OutcomeFailed, fallback.OutcomeTimeout,
			fallback.OutcomeRejected, fallback.OutcomeThrottled, fallback.OutcomeUnavailable, fallback.OutcomeGone,
			fallback.OutcomeUnsent, fallback.OutcomeCancelled)},
		{"state, to", "`tripline_breaker_state`, `tripline_breaker_transitions_total`", names(breaker.HalfOpen, breaker.State.String)},
		{"reason", "`tripline_breaker_transitions_total`", names(breaker.ReasonProbesHealthy, breaker.Reason.String)},
		{"verdict", "`tripline_breaker_probes_total`", names(breaker.VerdictRepeated, breaker.Verdict.String)},
		{"reason", "`tripline_diverted_total`", texts(fallback.ReasonOpen, fallback.ReasonProbeCap, fallback.ReasonFailed,
			fallback.ReasonLaneFull, fallback.ReasonOrder, fallback.ReasonDisabled, fallback.ReasonRamp, fallback.ReasonShutdown, fallback.ReasonRedrive)},
		{"reason", "`tripline_dead_letters_total`", texts(fallback.DeadRejected, fallback.DeadMaxAttempts, fallback.DeadExpired,
			fallback.DeadOverflow, fallback.DeadUnsent)},
	}
}

// names are the words of 0 up to last, without the empty one.
func names[T ~uint8](last T, word func(T) string) []string {
	var all []string
	for v := range last + 1 {
		if w := word(v); w != "" {
			all = append(all, w)
		}
	}
	return all
}

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

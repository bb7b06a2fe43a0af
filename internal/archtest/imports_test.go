// Package archtest holds the rules of the house that no compiler checks.
package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tripline/tripline"

// allowed names, for each package that has a rule, every package of ours that
// it may import. A package that isn't listed may import anything but the ones
// in topOnly.
var allowed = map[string][]string{
	"geofence":          {},
	"breaker":           {},
	"router":            {"geofence"},
	"router/webhook":    {"router", "internal/answer", "internal/egress", "internal/secret"},
	"router/natssink":   {"router", "internal/answer"},
	"internal/answer":   {"router"},
	"internal/egress":   {},
	"internal/secret":   {},
	"fallback":          {"router", "breaker", "geofence"},
	"fallback/jetqueue": {"fallback", "router", "geofence"},
	"internal/ingest":   {"router", "geofence"},
	"internal/state":    {"router", "geofence"},
	"internal/natsconn": {},
	"internal/tracks":   {"geofence", "internal/ingest"},
}

// topOnly may be imported by nothing but cmd, the demo and the benchmarks.
var topOnly = []string{"internal/app"}

// foreign names modules that the libraries must not need.
var foreign = map[string][]string{
	"geofence": {"github.com/nats-io/", "github.com/prometheus/"},
	"breaker":  {"github.com/nats-io/", "github.com/prometheus/"},
	"router":   {"github.com/nats-io/", "github.com/prometheus/"},
	"fallback": {"github.com/nats-io/", "github.com/prometheus/"},
}

// peers are what the benchmarks compare with. The product has none of them.
var peers = []string{
	"github.com/sony/gobreaker", "github.com/failsafe-go/", "github.com/golang/geo",
	"github.com/tidwall/geojson", "pgregory.net/rapid", "go.uber.org/goleak",
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestImportsRunOneWay(t *testing.T) {
	lines := list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	if len(lines) < len(allowed) {
		t.Fatalf("go list found %d packages; want at least %d", len(lines), len(allowed))
	}
	seen := map[string]bool{}
	for _, line := range lines {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module+"/")
		seen[pkg] = true
		for _, imp := range fields[1:] {
			checkForeign(t, pkg, imp)
			ours, ok := strings.CutPrefix(imp, module+"/")
			if !ok {
				continue
			}
			if may, ruled := allowed[pkg]; ruled && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s; it may import only %v", pkg, ours, may)
			}
			top := strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "bench/") || pkg == "internal/demo"
			if slices.Contains(topOnly, ours) && !top {
				t.Errorf("%s imports %s, which only cmd, the demo and bench may", pkg, ours)
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("there is a rule for %s, but no such package", pkg)
		}
	}
}

func checkForeign(t *testing.T, pkg, imp string) {
	t.Helper()
	for _, prefix := range foreign[pkg] {
		if strings.HasPrefix(imp, prefix) {
			t.Errorf("%s imports %s; it must be usable without", pkg, imp)
		}
	}
}

func TestProductHasNoPeers(t *testing.T) {
	for _, dep := range list(t, "-deps", module+"/cmd/tripline") {
		for _, peer := range peers {
			if strings.HasPrefix(dep, peer) {
				t.Errorf("the product's binary contains %s", dep)
			}
		}
	}
}

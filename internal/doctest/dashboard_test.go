package doctest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tripline/tripline/internal/demo"
)

// board is the dashboard, as far as it is checked here.
type board struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type string
			Definition string
			Query      any
		}
	}
	Panels []boardPanel
}

type boardPanel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []boardTarget
}

type boardTarget struct {
	RefID, Expr, LegendFormat string
	Instant, Range            bool
	Datasource                struct{ Type, UID string }
}

func dashboard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal(file(t, "deploy/grafana/dashboards/tripline.json"), &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Panels) < 25 {
		t.Fatalf("only %d panels", len(b.Panels))
	}
	return b
}

// What Grafana does not complain of, and shows wrong all the same.
func TestDashboardIsWellFormed(t *testing.T) {
	b := dashboard(t)
	// Those of Grafana's units that are used, by the ids that it has for them.
	units := []string{"short", "s", "bytes", "cps", "percentunit", ""}
	declared := map[string]bool{"__rate_interval": true}
	for _, v := range b.Templating.List {
		declared[v.Name] = true
	}
	variable := regexp.MustCompile(`\$\{?(\w+)`)
	label := regexp.MustCompile(`\{\{(\w+)\}\}`)
	ids := map[int]bool{}
	for i, p := range b.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %q: its id %d is 0 or another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, q := range b.Panels[:i] {
			a, c := p.GridPos, q.GridPos
			if a.X < c.X+c.W && c.X < a.X+a.W && a.Y < c.Y+c.H && c.Y < a.Y+a.H {
				t.Errorf("panels %q and %q lie on each other", p.Title, q.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || p.Title == "" {
			t.Errorf("panel %q does not say what it shows", p.Title)
		}
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("panel %q: is %q a unit of Grafana's? Then add it here", p.Title, p.FieldConfig.Defaults.Unit)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.RefID == "" || refs[q.RefID] {
				t.Errorf("panel %q: refId %q is empty or there twice", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			if q.Datasource.UID != "${datasource}" || p.Datasource != q.Datasource || q.Datasource.Type != "prometheus" {
				t.Errorf("panel %q does not ask the chosen data source", p.Title)
			}
			if q.Instant == q.Range || q.Instant != (p.Type == "stat") {
				t.Errorf("panel %q, %s: instant %t, range %t", p.Title, q.RefID, q.Instant, q.Range)
			}
			for _, v := range variable.FindAllStringSubmatch(q.Expr, -1) {
				if !declared[v[1]] {
					t.Errorf("panel %q uses the variable %s, which is not declared", p.Title, v[1])
				}
			}
			// With several instances the lines of one legend must be one line.
			if by := regexp.MustCompile(`by \(([\w, ]+)\)`).FindStringSubmatch(q.Expr); by != nil {
				for _, l := range label.FindAllStringSubmatch(q.LegendFormat, -1) {
					if !slices.Contains(strings.Split(by[1], ", "), l[1]) {
						t.Errorf("panel %q: the legend names %s, which is aggregated away", p.Title, l[1])
					}
				}
			} else if p.Type != "stat" && !strings.Contains(q.LegendFormat, "{{instance}}") {
				t.Errorf("panel %q, %s: a line for each instance, and the legend does not tell them apart", p.Title, q.RefID)
			}
		}
	}
}

// quiet are the queries that show nothing in a demo: nothing of it happens.
var quiet = regexp.MustCompile(`tripline_(dead_letters|lost|reader_restarts)_total.*> 0$`)

// A real Prometheus scrapes a demo, with the configuration of the compose
// file. Every query of the dashboard is understood and has data, what its
// legend names is in it, and the alerts can be evaluated.
func TestDashboardShowsADemo(t *testing.T) {
	if os.Getenv("TRIPLINE_DASHBOARD") == "" {
		t.Skip("waits for the demo's outage; TRIPLINE_DASHBOARD=1 runs it")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus here; Debian has it in the package of that name")
	}
	admin, listen := freeAddress(t), freeAddress(t)
	startDemo(t, admin)
	startPrometheus(t, program, admin, listen)
	api := promAPI{t: t, base: "http://" + listen + "/api/v1/"}

	b := dashboard(t)
	variables := strings.NewReplacer("$__rate_interval", "15s", "$instance", ".*", "$consumer", ".*")
	pending, silent := map[string]boardTarget{}, map[string]string{}
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			name := p.Title + " " + q.RefID
			if q.Expr = variables.Replace(q.Expr); quiet.MatchString(q.Expr) {
				silent[name] = q.Expr
			} else {
				pending[name] = q
			}
		}
	}
	api.eventually("every panel has data", func() []string {
		for name, q := range pending {
			if series := api.query(q.Expr); len(series) > 0 {
				checkLegend(t, name, q.LegendFormat, series[0])
				delete(pending, name)
			}
		}
		return slices.Collect(maps.Keys(pending))
	})
	for name, expr := range silent {
		if series := api.query(expr); len(series) > 0 {
			t.Errorf("%s: the demo went wrong: %v", name, series)
		}
	}
	for _, v := range b.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Definition); m != nil {
			if values := api.labelValues(variables.Replace(m[1]), m[2]); len(values) == 0 {
				t.Errorf("the variable %s has no values", v.Name)
			}
		}
	}
	api.eventually("every alert has been evaluated", api.unhealthyRules)
}

func checkLegend(t *testing.T, name, legend string, series map[string]string) {
	t.Helper()
	for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1) {
		if series[l[1]] == "" {
			t.Errorf("%s: the legend names %s, and the data has only %v", name, l[1], series)
		}
	}
}

// freeAddress is one that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startDemo(t *testing.T, admin string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- demo.Run(ctx, demo.Options{Seed: 1, Admin: admin, Out: io.Discard, Log: slog.New(slog.DiscardHandler), Version: "test"})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the demo: %v", err)
		}
	})
}

// startPrometheus runs it with the compose file's configuration, except for
// what that says of the machines.
func startPrometheus(t *testing.T, program, admin, listen string) {
	t.Helper()
	var cfg map[string]any
	if err := yaml.Unmarshal(file(t, "deploy/compose/prometheus.yml"), &cfg); err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs(filepath.Join(root, "deploy/prometheus/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	cfg["rule_files"] = []string{alerts}
	job, ok := cfg["scrape_configs"].([]any)[0].(map[string]any)
	if !ok {
		t.Fatal("the compose file's Prometheus scrapes nothing")
	}
	job["static_configs"] = []any{map[string]any{"targets": []string{admin}}}
	cfg["scrape_configs"] = []any{job}
	data, err := json.Marshal(cfg) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen, "--log.level=error")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", &out)
		}
	})
}

// promAPI asks a Prometheus.
type promAPI struct {
	t    *testing.T
	base string
}

// get asks; false while it is not up.
func (a promAPI) get(path string, query url.Values, data any) bool {
	a.t.Helper()
	resp, err := http.Get(a.base + path + "?" + query.Encode())
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return false // starting
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		a.t.Fatalf("%s: %s %s %v", query, resp.Status, answer.Error, err)
	}
	return true
}

// query returns the labels of each series.
func (a promAPI) query(expr string) (series []map[string]string) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	a.get("query", url.Values{"query": {expr}}, &data)
	for _, r := range data.Result {
		series = append(series, r.Metric)
	}
	return series
}

func (a promAPI) labelValues(match, label string) (values []string) {
	a.get("label/"+label+"/values", url.Values{"match[]": {match}}, &values)
	return values
}

// unhealthyRules are those that have not been evaluated, or could not be.
func (a promAPI) unhealthyRules() (names []string) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if !a.get("rules", nil, &data) || len(data.Groups) == 0 {
		return []string{"all"}
	}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				names = append(names, fmt.Sprintf("%s: %s %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	return names
}

// eventually waits until nothing is left.
func (a promAPI) eventually(what string, left func() []string) {
	a.t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for {
		missing := left()
		if len(missing) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			slices.Sort(missing)
			a.t.Fatalf("%s: not within 90 s: %s", what, strings.Join(missing, "; "))
		}
	}
}

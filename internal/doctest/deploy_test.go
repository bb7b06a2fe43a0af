package doctest_test

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/natsconn"
)

func file(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rule is one alert.
type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var f struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(file(t, "deploy/prometheus/alerts.yml"), &f); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 12 {
		t.Fatalf("only %d alerts", len(all))
	}
	return all
}

// promtool runs Prometheus' own checks, where it is installed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here; Debian has it in the package prometheus")
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertRules(t *testing.T) {
	promtool(t, "check", "rules", "deploy/prometheus/alerts.yml")
	promtool(t, "test", "rules", "deploy/prometheus/alerts_test.yml")
	promtool(t, "check", "config", "--syntax-only", "deploy/compose/prometheus.yml")
}

// Each alert has a severity, a test, and a section of the runbook that says
// what it means and what to do; and the runbook has no section of none.
func TestAlertsHaveARunbook(t *testing.T) {
	runbook := read(t, "docs/runbook.md")
	tests := string(file(t, "deploy/prometheus/alerts_test.yml"))
	names := map[string]bool{}
	for _, r := range rules(t) {
		names[r.Alert] = true
		u, err := url.Parse(r.Annotations["runbook_url"])
		if err != nil || !strings.HasSuffix(u.Path, "/docs/runbook.md") || u.Fragment != strings.ToLower(r.Alert) {
			t.Errorf("%s: runbook_url is %q", r.Alert, r.Annotations["runbook_url"])
		} else if !anchors(runbook)[u.Fragment] {
			t.Errorf("%s: the runbook has no section of it", r.Alert)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: summary or description is missing", r.Alert)
		}
		if !regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:`).MatchString(tests) {
			t.Errorf("%s: no test in which it fires", r.Alert)
		}
	}
	sections := regexp.MustCompile(`(?m)^## (\w+)\n([^#]*)`).FindAllStringSubmatch(runbook.text, -1)
	for _, s := range sections {
		if !names[s[1]] {
			t.Errorf("the runbook tells of %s, which is no alert", s[1])
		}
		if !strings.Contains(s[2], "**Means.**") || !strings.Contains(s[2], "**Do.**") {
			t.Errorf("the runbook does not say what %s means and what to do", s[1])
		}
	}
}

// usedBy checks the tripline_ names of a text against the code.
func usedBy(t *testing.T, where, text string, seen map[string]bool) {
	t.Helper()
	known := map[string]bool{}
	for _, m := range declared(t) {
		known[m.name] = true
		if m.kind == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[m.name+suffix] = true
			}
		}
	}
	for _, name := range regexp.MustCompile(`tripline_[a-z_]+[a-z]`).FindAllString(text, -1) {
		if !known[name] {
			t.Errorf("%s names %s, which the code does not have", where, name)
		}
		seen[strings.TrimSuffix(name, "_bucket")] = true
	}
}

type panel struct {
	Title, Type string
	Targets     []struct{ Expr string }
	Panels      []panel
	GridPos     struct{ X, Y, W, H int }
}

// Every metric that an alert, the dashboard or a page names exists, and every
// metric that exists is on the dashboard.
func TestMetricsThatAreUsedExist(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		usedBy(t, r.Alert, r.Expr, seen)
	}
	usedBy(t, "alerts_test.yml", string(file(t, "deploy/prometheus/alerts_test.yml")), seen)
	for _, p := range pages(t) {
		if p.path != reference {
			usedBy(t, p.path, p.text, seen)
		}
	}
	var board struct {
		UID, Title string
		Panels     []panel
	}
	if err := json.Unmarshal(file(t, "deploy/grafana/dashboards/tripline.json"), &board); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	queries := 0
	for _, p := range board.Panels {
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q reaches beyond the grid", p.Title)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			usedBy(t, "panel "+p.Title, target.Expr, shown)
		}
	}
	if queries < 20 {
		t.Errorf("only %d queries on the dashboard", queries)
	}
	for _, m := range declared(t) {
		if !shown[m.name] && m.name != "tripline_fences" {
			t.Errorf("%s is not on the dashboard", m.name)
		}
	}
}

// The queries of the dashboard are PromQL: promtool reads them as rules.
func TestDashboardQueriesParse(t *testing.T) {
	var board struct{ Panels []panel }
	if err := json.Unmarshal(file(t, "deploy/grafana/dashboards/tripline.json"), &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$consumer", ".*")
	var list []map[string]string
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			list = append(list, map[string]string{"record": "x", "expr": variables.Replace(target.Expr), "labels": ""})
			delete(list[len(list)-1], "labels")
		}
	}
	data, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "x", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queries.yml") // JSON is YAML
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", path)
}

func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Volumes []string }
	}
	if err := yaml.Unmarshal(file(t, "docker-compose.yml"), &compose); err != nil {
		t.Fatal(err)
	}
	for name, s := range compose.Services {
		for _, v := range s.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "./") {
				if _, err := os.Stat(filepath.Join(root, from)); err != nil {
					t.Errorf("%s mounts %s, which isn't there", name, from)
				}
			}
		}
	}
	cfg, err := config.Load(filepath.Join(root, "deploy/compose/tripline.yaml"), config.WithEnv(env), config.WithDir(filepath.Join(root, "examples")))
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Consumers) != 1 {
		t.Errorf("%d consumers", len(cfg.Consumers))
	}
	tool, err := exec.LookPath("docker-compose")
	if err != nil {
		t.Skip("no docker-compose here to check the rest")
	}
	cmd := exec.Command(tool, "config", "-q")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("docker-compose config: %v\n%s", err, out)
	}
}

func TestSystemdUnit(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	// It wants the program to be there.
	unit := strings.ReplaceAll(string(file(t, "deploy/systemd/tripline.service")), "/usr/local/bin/tripline", "/bin/true")
	path := filepath.Join(t.TempDir(), "tripline.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// What is left is the network, and the files that everybody may read.
	out, err := exec.Command(tool, "security", "--offline=true", "--threshold=15", path).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// A nats-server runs with each of the files, as Tripline needs it.
func TestNATSConfigurations(t *testing.T) {
	for _, c := range []struct{ path, user string }{
		{"deploy/nats/nats.conf", "tripline"},
		{"deploy/compose/nats.conf", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			for _, name := range []string{"TRIPLINE_PASSWORD", "GATEWAY_PASSWORD", "ADMIN_PASSWORD"} {
				t.Setenv(name, strings.ToLower(name))
			}
			opts, err := server.ProcessConfigFile(filepath.Join(root, c.path))
			if err != nil {
				t.Fatal(err)
			}
			if opts.SyncInterval != 100*time.Millisecond || opts.JetStreamMaxStore == 0 {
				t.Errorf("sync_interval %v, max_file_store %d", opts.SyncInterval, opts.JetStreamMaxStore)
			}
			opts.StoreDir, opts.Host, opts.Port, opts.HTTPPort, opts.NoSigs, opts.NoLog = t.TempDir(), "127.0.0.1", -1, 0, true, true
			srv, err := server.NewServer(opts)
			if err != nil {
				t.Fatal(err)
			}
			srv.Start()
			defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
			if !srv.ReadyForConnections(20 * time.Second) {
				t.Fatal("not ready")
			}
			nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo(c.user, "tripline_password"))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if err := natsconn.Check(t.Context(), nc); err != nil {
				t.Error(err)
			}
		})
	}
}

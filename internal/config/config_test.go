package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/config"
)

var update = flag.Bool("update", false, "rewrite what the errors should read")

// Each file under testdata/errors is wrong in several ways; beside it stands
// what is said about it. The codes in their names are those of the faults
// that the project keeps out.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := config.Load(file, environment(nil))
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, "yaml") + "txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestR13_NoSecretInErrors(t *testing.T) {
	_, err := config.Load("testdata/errors/R13_secrets.yaml", environment(nil))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret is told:\n%v", err)
	}
}

func TestR13_NoSecretInValues(t *testing.T) {
	cfg, err := config.Parse("t.yaml", []byte(`
nats: {url: "nats://ann:hunter2@example.org", token: env:T}
consumers:
  - name: a
    webhook: {url: "https://example.org/h?key=hunter2", secrets: ["whsec_aHVudGVyMmh1bnRlcjI="], headers: {X-Key: hunter2-key}, egress: any}
    breaker: {p99: 1s}
admin: {token: hunter2-admin}
`), environment(map[string]string{"T": "hunter2-token"}))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(encoded), fmt.Sprintf("%v %+v %#v %s", cfg.NATS, cfg.Admin, cfg.NATS.URL, cfg.Consumers[0].Webhook.URL), fmt.Sprintf("%+v", *cfg.Consumers[0].Webhook), cfg.Warnings.Error()} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMmh1bnRlcjI") {
			t.Errorf("a secret is told: %s", text)
		}
	}
	if string(cfg.NATS.Token) != "hunter2-token" || cfg.NATS.URL.Reveal() != "nats://ann:hunter2@example.org" {
		t.Error("the program itself can't get at the secrets")
	}
	if got := cfg.NATS.URL.String(); got != "nats://xxxxx@example.org" {
		t.Errorf("the URL prints as %s", got)
	}
}

func TestDefaults(t *testing.T) {
	cfg, err := config.Parse("t.yaml", nil, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.NATS.Embedded() || cfg.NATS.Namespace != "tripline" || !cfg.Ingest.Durable || cfg.Ingest.Partitions != 16 ||
		!slices.Equal(cfg.Ingest.Subjects, []string{"location.*", "owntracks.*.*"}) || cfg.Tracking.MaxFuture != 5*time.Minute ||
		cfg.Admin.Listen != "127.0.0.1:8080" || cfg.ShutdownGrace != 5*time.Second {
		t.Errorf("got %+v", cfg)
	}
	if len(cfg.Warnings) != 2 {
		t.Errorf("want warnings of no fences and no consumers, got %v", cfg.Warnings)
	}
}

func TestConsumer(t *testing.T) {
	cfg, err := config.Parse("t.yaml", []byte(`
usual: &usual {p99: 500ms, probes: 1}
`), environment(nil))
	if err == nil {
		t.Fatal("a key for anchors alone is unknown like any other", cfg)
	}
	cfg, err = config.Parse("t.yaml", []byte(`
consumers:
  - name: a
    match: {transitions: [cross], priority: high}
    nats: {subject: "t.{fence}"}
    breaker: &usual {p99: 500ms, probes: 1}
  - name: b
    match: [{fences: [x]}, {devices: ["y-*"], priority: low}]
    request: {subject: t.x, timeout: 1s}
    breaker: {<<: *usual, probes: 3}
    max_rate: 2.5
  - name: c
    jetstream: {subject: t.y}
    breaker: *usual
`), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := cfg.Consumers[0], cfg.Consumers[1], cfg.Consumers[2]
	if a.Timeout != 2*time.Second || len(a.Match) != 1 || a.Match[0].Transitions[0] != "cross" || a.Match[0].Priority != "high" {
		t.Errorf("a: got %+v", a)
	}
	if b.Timeout != time.Second || b.Breaker.P99 != 500*time.Millisecond || b.Breaker.Probes != 3 || b.MaxRate != 2.5 ||
		len(b.Match) != 2 || b.Match[0].Priority != "normal" || b.Match[1].Path != "consumers[1].match[1]" {
		t.Errorf("b: got %+v", b)
	}
	if c.Breaker != a.Breaker || len(c.Match) != 1 || !slices.Equal(c.Match[0].Transitions, []string{"enter", "exit", "dwell"}) {
		t.Errorf("c: got %+v", c)
	}
	if at := cfg.At(b.Match[1].Path + ".priority"); at.String() != "t.yaml:8:57" {
		t.Errorf("priority of b is at %v", at)
	}
	if at := cfg.At(a.Match[0].Path + ".where"); at.Line != 4 {
		t.Errorf("a key that is left out is placed at the one above it; got %v", at)
	}
	p := cfg.Problem(b.Path+".max_rate", "too %s", "odd")
	if want := "t.yaml:11:15: too odd\n   11 |     max_rate: 2.5\n      |               ^"; p.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", p, want)
	}
}

func TestSecretsFromFilesAndEnvironment(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"token": "s3cret-token\r\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(token string) (*config.Config, error) {
		return config.Parse(filepath.Join(dir, "t.yaml"), []byte("admin: {token: "+token+"}"), environment(map[string]string{"TOKEN": "s3cret-env", "EMPTY": ""}))
	}
	for token, want := range map[string]string{"file:token": "s3cret-token", "env:TOKEN": "s3cret-env", "plain-text": "plain-text"} {
		if cfg, err := parse(token); err != nil || string(cfg.Admin.Token) != want {
			t.Errorf("%s: got %v", token, err)
		}
	}
	for _, token := range []string{"file:none", "file:empty", "env:NONE", "env:EMPTY"} {
		_, err := parse(token)
		if p, ok := errors.AsType[config.Problem](err); !ok || p.Line != 1 || p.Column != 16 || p.Path != "admin.token" {
			t.Errorf("%s: got %v", token, err)
		}
	}
}

func TestNATSFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	const seed = "SUAGCIDTMVSWIIDGN5ZCA5DFON2HGLBAN5TCAMZSEBRHS5DFOMXC4LWGJM" // of "a seed for tests, of 32 bytes..."
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("seed.nk", seed, 0o600)
	write("note", "not what it should be", 0o600)
	write("locked", "x", 0)
	tests := []struct{ setting, path, want string }{
		{"nkey: seed.nk", "", ""},
		{"nkey: note", "nats.nkey", "no nkey seed found"},
		{"nkey: " + seed, "nats.nkey", "is the seed itself"},
		{"creds: note", "nats.creds", "give a .creds file"},
		{"creds: none", "nats.creds", "no such file"},
		{"tls: {ca: note}", "nats.tls.ca", "no certificate in PEM"},
		{"tls: {cert: note, key: note}", "nats.tls.cert", "client certificate"},
	}
	if os.Getuid() != 0 {
		tests = append(tests, struct{ setting, path, want string }{"creds: locked", "nats.creds", "let the user that Tripline runs as read it"})
	}
	for _, tt := range tests {
		_, err := config.Parse(filepath.Join(dir, "t.yaml"), []byte("nats:\n  url: nats://x\n  "+tt.setting+"\n"), environment(nil))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: got %v", tt.setting, err)
			}
			continue
		}
		p, ok := errors.AsType[config.Problem](err)
		if !ok || p.Path != tt.path || p.Line != 3 || !strings.Contains(p.Message, tt.want) {
			t.Errorf("%s: got %v; want %q at %s", tt.setting, err, tt.want, tt.path)
		}
		if strings.Contains(fmt.Sprint(err), seed) {
			t.Errorf("%s: the seed is told: %v", tt.setting, err)
		}
	}
}

// What hides a secret has the same length, however long that is, and the mark
// still stands below what is meant.
func TestMasksHaveOneLength(t *testing.T) {
	line := func(secret string) string {
		_, err := config.Parse("t.yaml", []byte("nats: {user: ann, password: "+secret+", lissten: x}"), environment(nil))
		p, ok := errors.AsType[config.Problem](err)
		if !ok {
			t.Fatalf("%s: got %v", secret, err)
		}
		_, shown, _ := strings.Cut(p.Error(), "\n")
		return shown
	}
	short, long := line("hunter2"), line("correct-horse-battery-staple")
	if short != long || !strings.HasSuffix(short, "lissten: x}\n      |                                    ^") {
		t.Errorf("got\n%s\nand\n%s", short, long)
	}
}

func TestNATSURLFromEnvironment(t *testing.T) {
	env := environment(map[string]string{"NATS_URL": "nats://other:4222"})
	cfg, err := config.Parse("t.yaml", nil, env)
	if err != nil || cfg.NATS.Embedded() || cfg.NATS.URL.Reveal() != "nats://other:4222" {
		t.Errorf("got %v, %v", cfg, err)
	}
	cfg, err = config.Parse("t.yaml", []byte("nats: {url: nats://mine:4222}"), env)
	if err != nil || cfg.NATS.URL.Reveal() != "nats://mine:4222" {
		t.Errorf("got %v, %v", cfg, err)
	}
}

func TestWarnings(t *testing.T) {
	cfg, err := config.Parse("t.yaml", []byte(`
nats: {url: nats://x, store_dir: /x}
tracking: {dwell: [2h], forget_after: 1h}
fences: [{kv: true}]
consumers:
  - name: a
    match: {transitions: [silent]}
    webhook: {url: https://example.org, secrets: [short]}
`), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, w := range cfg.Warnings {
		paths = append(paths, w.Path)
	}
	want := []string{"nats.store_dir", "tracking.dwell[0]", "consumers[0].match.transitions", "consumers[0].webhook", "consumers[0].webhook", "consumers[0].webhook.secrets[0]", "consumers[0].webhook.secrets[0]"}
	if !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
}

func TestBudget(t *testing.T) {
	parse := func(text string) *config.Config {
		cfg, err := config.Parse("t.yaml", []byte(text), environment(nil))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const gib = 1 << 30
	two := parse("consumers: [{name: a, nats: {subject: x.y}}, {name: b, nats: {subject: x.y}, fallback: {max_bytes: 100MiB}}]")
	b, err := two.Budget(10 * gib)
	if err != nil || b.Ingest != 10*gib/4 || b.State != gib/2 || b.Dead != gib/2 || b.Fallback["a"] != gib || b.Fallback["b"] != 100<<20 {
		t.Errorf("got %+v, %v", b, err)
	}
	if b, err = two.Budget(gib); err != nil || b.Fallback["a"] != gib/4 || b.Total() > gib {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err = two.Budget(10 << 20); err == nil {
		t.Error("no error for a store that is too small")
	}
	core := parse("ingest: {durable: false}")
	if b, err = core.Budget(gib); err != nil || b.Ingest != 0 {
		t.Errorf("core mode: got %+v, %v", b, err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0, " 2m ": 2 * time.Minute,
	} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "5 minutes", "d", "1d2", "9e9d", "NaNd", "1dd"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]config.Size{
		"0": 0, "1024": 1024, "512MiB": 512 << 20, "10GB": 10e9, "1.5 KiB": 1536, "2M": 2 << 20, "7B": 7, "1TiB": 1 << 40, "3kB": 3000,
	} {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "lots", "-1", "MiB", "NaN", "9e30", "1XB"} {
		if got, err := config.ParseSize(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
	for size, want := range map[config.Size]string{0: "0 B", 500: "500 B", 1536: "1.5 KiB", 1 << 30: "1 GiB", 3 << 41: "6 TiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(size), got, want)
		}
	}
}

func TestLoadOfAMissingFile(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "name the file with -c") {
		t.Errorf("got %v", err)
	}
}

func TestOneLineForALog(t *testing.T) {
	_, err := config.Parse("t.yaml", []byte("fence: []\nlog: {level: loud}\n"), environment(nil))
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	line := problems.OneLine()
	if strings.Contains(line, "\n") || !strings.Contains(line, `t.yaml:1:1: unknown key "fence"`) || !strings.Contains(line, "; t.yaml:2:14: log.level") {
		t.Errorf("got %q", line)
	}
}

// FuzzParse holds that no text makes the reader panic, and that it either
// takes a file or says what is wrong with it.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, file := range append(files, reference, "../../examples/tripline.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a, *a]\nb: &b {<<: *b}\nc: !!binary x\n? [k]\n: v"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := config.Parse("t.yaml", data, environment(nil))
		if (cfg == nil) == (err == nil) {
			t.Fatalf("got %v, %v", cfg, err)
		}
		if problems, ok := errors.AsType[config.Problems](err); err != nil && (!ok || len(problems) == 0 || strings.TrimSpace(err.Error()) == "") {
			t.Fatalf("an error without a problem: %v", err)
		}
	})
}

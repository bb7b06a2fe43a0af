package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// tripline runs a command in this process.
func tripline(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return triplineWithin(t, t.Context(), stdin, args...)
}

func triplineWithin(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(streams{ctx: ctx, in: strings.NewReader(stdin), out: &out, err: &errs}, args)
	return result{code, out.String(), errs.String()}
}

// file writes a file of the test's own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits for something that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// clean removes what would reach the commands from the environment.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{"NATS_URL", "NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CA", "NATS_CERT", "NATS_KEY", "TRIPLINE_NAMESPACE"} {
		if old, ok := os.LookupEnv(name); ok {
			os.Unsetenv(name)
			t.Cleanup(func() { os.Setenv(name, old) })
		}
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	r := tripline(t, "", "--help")
	if r.code != exitOK || !strings.Contains(r.out, "Exit codes: 0 done, 1 failed, 2 wrong") {
		t.Fatalf("got %+v", r)
	}
	_, list, _ := strings.Cut(r.out, "Commands:\n")
	var commands []string
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") {
			commands = append(commands, strings.Fields(line)[0])
		}
	}
	if len(commands) < 7 {
		t.Fatalf("only the commands %v in\n%s", commands, r.out)
	}
	for _, c := range commands {
		r := tripline(t, "", c, "--help")
		if r.code != exitOK || !strings.Contains(r.out, "Example") || !strings.Contains(r.out, "tripline "+c) {
			t.Errorf("%s: no example in\n%s", c, r.out)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{nil, "expected one of"},
		{[]string{"nope"}, "nope"},
		{[]string{"match"}, "missing flags"},
		{[]string{"match", "--fences", "x", "--fixes", "y", "--on", "leave"}, "--on leave: the kinds are enter, exit, dwell, cross, inside, silent"},
		{[]string{"send", "v1", "52"}, "expected"},
		{[]string{"send", "v1", "north", "4"}, `"north" is no number`},
		{[]string{"send", "v 1", "52", "4"}, "a device id has parts"},
		{[]string{"send", "v1", "52", "4", "--props", "{"}, "--props is no JSON"},
		{[]string{"publish", "x", "--speed", "fast"}, "--speed fast: write 1x, 10x or max"},
		{[]string{"publish", "x", "--subject", "location.x"}, "has no {device}"},
		{[]string{"check", "-c"}, "expected string value"},
		{[]string{"demo", "--for", "0s"}, "--for is longer than 0s; leave it out to run until Ctrl-C"},
		{[]string{"demo", "--for=-1s"}, "--for is longer than 0s"},
		{[]string{"demo", "--admin", "8080"}, "--admin 8080 is no HOST:PORT"},
		{[]string{"demo", "--admin", "0.0.0.0:0"}, "--admin 0.0.0.0:0 is reachable from other machines"},
		{[]string{"send", "v1", "52", "4", "--timeout", "0s"}, "--timeout is longer than 0s"},
		{[]string{"doctor", "--timeout", "0s"}, "--timeout is longer than 0s"},
	}
	for _, tt := range tests {
		r := tripline(t, "", tt.args...)
		if r.code != exitUsage || !strings.Contains(r.err, tt.want) || r.out != "" {
			t.Errorf("%v: got %+v, want %q", tt.args, r, tt.want)
		}
		if strings.Count(strings.TrimSpace(r.err), "\n") > 0 {
			t.Errorf("%v: more than one line: %s", tt.args, r.err)
		}
	}
}

func TestVersion(t *testing.T) {
	r := tripline(t, "", "version")
	if r.code != exitOK || !strings.HasPrefix(r.out, "tripline ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("got %+v", r)
	}
	var got struct{ Version, OS, Arch, Go string }
	r = tripline(t, "", "version", "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Version == "" || got.Go == "" || got.OS == "" || got.Arch == "" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestAReloadSaysWhatIsWrongOnOneLine(t *testing.T) {
	c := runCmd{Config: file(t, "t.yaml", "fence: []\n")}
	_, err := c.reload()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `t.yaml:1:1: unknown key "fence"`) {
		t.Errorf("got %v", err)
	}
}

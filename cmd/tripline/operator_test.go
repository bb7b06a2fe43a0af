package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tripline/tripline/internal/admin/live"
)

func TestFencesCommands(t *testing.T) {
	l := startService(t)
	if out := l.must("fences", "ls"); !strings.Contains(out, "yard  The yard  Polygon   file") {
		t.Errorf("ls:\n%s", out)
	}
	gate := file(t, "gate.geojson", `{"type":"Feature","id":"gate/1 a","properties":{"radius_m":500,"tags":["x","y"]},"geometry":{"type":"Point","coordinates":[10,50]}}`)
	if out := l.must("fences", "check", gate); out != "ok: 1 fence\n" {
		t.Errorf("check: %q", out)
	}
	if out := l.must("fences", "put", gate); out != "put 1 fence\n" {
		t.Errorf("put: %q", out)
	}
	if out := l.must("fences", "ls"); !strings.Contains(out, "gate/1 a") || !strings.Contains(out, "x y") {
		t.Errorf("ls:\n%s", out)
	}
	bad := file(t, "bad.geojson", `{"type":"Feature","id":"b","properties":{},"geometry":{"type":"Polygon","coordinates":[[[0,0],[1,1],[0,1],[1,0],[0,0]]]}}`)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"fences", "check", bad}, exitUsage, "crosses itself"},
		{[]string{"fences", "put", bad}, exitUsage, "crosses itself"},
		{[]string{"fences", "put", filepath.Join(filepath.Dir(l.path), "yard.geojson")}, exitFailure, "comes from a file"},
		{[]string{"fences", "rm", "gate/1 a"}, exitUsage, "add --yes"},
		{[]string{"fences", "rm", "nowhere", "--yes"}, exitFailure, "no such fence"},
	} {
		if r := tripline(t, "", tt.args...); r.code != tt.code || !strings.Contains(r.err, tt.want) || r.out != "" {
			t.Errorf("%v: %+v; want %d with %q", tt.args, r, tt.code, tt.want)
		}
	}
	if out := l.must("fences", "rm", "gate/1 a", "--yes"); out != "removed fence gate/1 a\n" {
		t.Errorf("rm: %q", out)
	}
}

func TestConsumersTable(t *testing.T) {
	l := startService(t)
	l.status.Store(500)
	for range 3 {
		l.visit("van-1")
		l.visit("van-2")
	}
	eventually(t, "an open breaker", func() bool { return l.hook().State != "closed" && l.hook().Backlog.Items == 12 })
	out := l.must("consumers")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "P99/LIMIT  DELIVERED/S  BACKLOG  OLDEST") ||
		!strings.HasPrefix(lines[1], "hook ") || !strings.Contains(lines[1], "/1000ms") || !strings.Contains(lines[1], " 12 ") ||
		!strings.HasPrefix(lines[2], "bus ") || !strings.Contains(lines[2], "closed") {
		t.Errorf("table:\n%s", out)
	}
	if out := l.must("consumers", "hook"); !strings.Contains(out, "last errors:") || !strings.Contains(out, "answered 500") || strings.Contains(out, "bus") {
		t.Errorf("one consumer:\n%s", out)
	}
	if r := tripline(t, "", "consumers", "nobody"); r.code != exitFailure || !strings.Contains(r.err, `no consumer "nobody"`) {
		t.Errorf("no consumer: %+v", r)
	}
}

// safeBuffer is a buffer that one goroutine writes to and another reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// background runs a command until the returned function stops it.
func background(t *testing.T, s streams, args ...string) (out, errs *safeBuffer, stop func() int) {
	t.Helper()
	out, errs = &safeBuffer{}, &safeBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	s.ctx, s.in, s.out, s.err = ctx, strings.NewReader(""), out, errs
	done := make(chan int, 1)
	go func() { done <- run(s, args) }()
	stop = sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { stop() })
	return out, errs, stop
}

func TestConsumersWatchRedrawsATerminal(t *testing.T) {
	startService(t)
	out, errs, stop := background(t, streams{outTerminal: true, colour: true}, "consumers", "--watch", "--every", "100ms")
	eventually(t, "three tables", func() bool { return strings.Count(out.String(), cursorHome) >= 3 })
	if code := stop(); code != exitOK || errs.String() != "" {
		t.Errorf("exit code %d, errors %q", code, errs)
	}
	text := out.String()
	if strings.Count(text, clearAll) != 1 || !strings.Contains(text, string(green)+"closed"+styleEnd) {
		t.Errorf("got %q", text)
	}
}

func TestTailFollowsTheTriggers(t *testing.T) {
	l := startService(t)
	plainOut, _, stopPlain := background(t, streams{}, "tail")
	enters, _, _ := background(t, streams{}, "tail", "--json", "--consumer", "bus", "--fence", "yard", "--device", "van-2", "--transition", "enter")
	// Nothing tells that the two are connected but a trigger that they show.
	eventually(t, "a first trigger", func() bool {
		l.visit("van-2")
		return strings.Contains(plainOut.String(), "van-2") && strings.Contains(enters.String(), "van-2")
	})
	l.visit("van-1")
	eventually(t, "an exit", func() bool { return strings.Contains(plainOut.String(), "exit    van-1  yard  to hook, bus") })
	for line := range strings.Lines(enters.String()) {
		var got struct {
			Event string
			live.Trigger
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Event != "trigger" || got.Device != "van-2" || got.Transition != "enter" {
			t.Errorf("%v in %s", err, line)
		}
	}
	if code := stopPlain(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	counted, _, _ := background(t, streams{}, "tail", "-n", "2")
	eventually(t, "two lines", func() bool {
		l.visit("van-3")
		return strings.Count(counted.String(), "\n") == 2
	})
	if r := tripline(t, "", "tail", "--transition", "leave"); r.code != exitUsage {
		t.Errorf("an unknown kind: %+v", r)
	}
	if r := tripline(t, "", "tail", "--consumer", "bsu"); r.code != exitFailure || r.err != "tripline: no consumer \"bsu\"\n" {
		t.Errorf("an unknown consumer: %+v", r)
	}
	_, told, _ := background(t, streams{}, "tail", "--fence", "yrad")
	eventually(t, "a word on the unknown fence", func() bool { return told.String() == "tripline: there is no fence \"yrad\" yet\n" })
}

func TestTheAdminServerIsAskedWithTheToken(t *testing.T) {
	l := startService(t)
	t.Setenv("TRIPLINE_ADMIN_TOKEN", "")
	const how = "--token-file FILE, or in the environment variable TRIPLINE_ADMIN_TOKEN\n"
	if r := tripline(t, "", "consumers"); r.code != exitFailure || !strings.Contains(r.err, "asks for a token") || !strings.HasSuffix(r.err, how) {
		t.Errorf("without a token: %+v", r)
	}
	wrong := file(t, "wrong", "another-token")
	if r := tripline(t, "", "tail", "--token-file", wrong); r.code != exitFailure || !strings.Contains(r.err, "does not accept the token from "+wrong) ||
		!strings.HasSuffix(r.err, how) || strings.Contains(r.err, "another-token") {
		t.Errorf("with a wrong token: %+v", r)
	}
	if r := tripline(t, "", "consumers", "--token-file", file(t, "token", testToken+"\n")); r.code != exitOK {
		t.Errorf("with the token in a file: %+v", r)
	}
	if r := tripline(t, "", "consumers", "--admin", strings.TrimPrefix(l.admin, "http://"), "--token-file", file(t, "token", testToken)); r.code != exitOK {
		t.Errorf("with an address without a scheme: %+v", r)
	}
	for _, tt := range []struct {
		admin string
		code  int
		want  string
	}{
		{"ftp://example.com", exitUsage, "is no http://"},
		{"http://127.0.0.1:1", exitFailure, "no service at http://127.0.0.1:1"},
	} {
		if r := tripline(t, "", "reload", "--admin", tt.admin); r.code != tt.code || !strings.Contains(r.err, tt.want) {
			t.Errorf("--admin %s: %+v; want %d with %q", tt.admin, r, tt.code, tt.want)
		}
	}
	missing := serve(t, http.NotFoundHandler())
	if r := tripline(t, "", "consumers", "--admin", missing); r.code != exitFailure || r.err != "tripline: "+missing+
		" does not answer like Tripline's admin server (404 Not Found 404 page not found): correct --admin or TRIPLINE_ADMIN\n" {
		t.Errorf("a server of something else: %+v", r)
	}
	if r := tripline(t, "", "consumers", "--admin", strings.Replace(l.nats, "nats:", "http:", 1)); r.code != exitFailure ||
		!strings.Contains(r.err, "does not answer like Tripline's admin server (") || len(r.err) > 300 {
		t.Errorf("the NATS server: %+v", r)
	}
	other := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) })
	if r := tripline(t, "", "consumers", "--admin", serve(t, other)); r.code != exitFailure || !strings.Contains(r.err, "does not answer like Tripline") {
		t.Errorf("another server: %+v", r)
	}
}

func TestCompletion(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	script := file(t, "completion.bash", tripline(t, "", "completion", "bash").out)
	complete := func(words ...string) string {
		t.Helper()
		var b strings.Builder
		b.WriteString("source '" + script + "'; COMP_WORDS=(tripline")
		for _, w := range words {
			b.WriteString(" '" + w + "'")
		}
		b.WriteString(`); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tripline; echo "${COMPREPLY[@]}"`)
		cmd := exec.CommandContext(t.Context(), "bash", "-c", b.String())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"fa"}, "fallback"},
		{[]string{"fallback", ""}, "ls show purge orphans"},
		{[]string{"dead", "pu"}, "purge"},
		{[]string{"dead", "redrive", "hook", "--de"}, "--device"},
		{[]string{"fallback", "ls", "--device", ""}, ""}, // a value
		{[]string{"fallback", "ls", "--json", "--fe"}, "--fence"},
		{[]string{"completion", ""}, "bash zsh fish"},
	} {
		if got := complete(tt.words...); got != tt.want {
			t.Errorf("%q completes to %q, want %q", tt.words, got, tt.want)
		}
	}
	if r := tripline(t, "", "completion", "csh"); r.code != exitUsage {
		t.Errorf("csh: %+v", r)
	}
}

// The scripts for the other shells are read by those shells. Outside of its
// line editor zsh has no completion: what the script calls is stood in for.
func TestCompletionInOtherShells(t *testing.T) {
	const zsh = `compdef() { :; }; _files() { print files; }; _describe() { local w; for w in ${(P)2}; do [[ $w == $PREFIX* ]] && print -r -- ${w%%:*}; done; true; }
source "$1"; words=(${(z)2}); words=("${(Q)words[@]}"); CURRENT=$#words; PREFIX=$words[-1]; _tripline`
	const fish = `source $argv[1]; complete -C "$argv[2]" | string replace -r '\t.*' ''`
	for shell, args := range map[string][]string{"zsh": {"-f", "-c", zsh, "zsh"}, "fish": {"-N", "-c", fish}} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("no %s here", shell)
			}
			script := file(t, "completion", tripline(t, "", "completion", shell).out)
			for line, want := range map[string]string{
				"tripline fallback ''":         "ls orphans purge show",
				"tripline completion ''":       "bash fish zsh",
				"tripline fences check --":     "--help --json",
				"tripline fences rm x --token": "--token-file",
			} {
				if shell == "fish" {
					line = strings.TrimSuffix(line, "''")
				}
				cmd := exec.CommandContext(t.Context(), shell, append(args, script, line)...)
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", line, err, out)
				}
				got := strings.Fields(string(out))
				slices.Sort(got)
				if strings.Join(got, " ") != want {
					t.Errorf("%s completes to %q, want %q", line, got, want)
				}
			}
		})
	}
}

// A tail goes on after the service was away; a first connection that fails is
// an error.
func TestTailConnectsAnew(t *testing.T) {
	clean(t)
	var connections atomic.Int64
	stream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := connections.Add(1)
		if n == 2 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, ": a comment\n\nevent: trigger\ndata: {\"device\":\"van-%d\",\"fence\":\"yard\",\"transition\":\"enter\",\"consumers\":[]}\n\n", n)
		fmt.Fprint(w, "event: dropped\ndata: {\"triggers\":7,\"notices\":0}\n\n")
	})
	r := tripline(t, "", "tail", "--admin", serve(t, stream), "-n", "2")
	if r.code != exitOK || !strings.Contains(r.out, "van-1  yard  to nobody\n") || !strings.Contains(r.out, "van-3") {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{"the stream broke", "7 triggers left out"} {
		if strings.Count(r.err, want) != 1 {
			t.Errorf("not once %q in %q", want, r.err)
		}
	}
	if r := tripline(t, "", "tail", "--admin", "http://127.0.0.1:1"); r.code != exitFailure || !strings.Contains(r.err, "no service at") {
		t.Errorf("without a service: %+v", r)
	}
}

package doctest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	blockWithin  = 3 * time.Minute  // a build on a busy machine takes its time
	outputWithin = 90 * time.Second // an open window lasts up to 36 s
	marker       = "@@doctest"
)

// ports that the guides use; where there is no network namespace they must be free.
var ports = []string{"4222", "8080", "9000", "1883"}

// session is a shell in which a guide is run.
type session struct {
	t          *testing.T
	page       page
	scratch    string // for scripts and logs
	in         io.WriteCloser
	lines      chan string // of the shell's output; closed at its end
	output     string      // of the last block
	background map[string]int
	blocks     int
}

// follow runs a guide's blocks in dir.
func follow(t *testing.T, p page, dir string, env ...string) {
	t.Helper()
	s := start(t, p, dir, env...)
	for _, b := range p.blocks {
		switch {
		case b.order != "":
			s.obey(b)
		case b.lang == "sh" && b.has("background"):
			s.launch(b)
		case b.lang == "sh" && !b.has("skip"):
			s.run(b)
		case b.lang == "text" && b.has("of"):
			s.expect(b, func() string { return s.log(b.info["of"]) })
		case b.lang == "text":
			s.expect(b, func() string { return s.output })
		}
	}
	if s.blocks == 0 {
		t.Fatalf("%s has no block to run", p.path)
	}
}

func start(t *testing.T, p page, dir string, env ...string) *session {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	s := &session{t: t, page: p, scratch: t.TempDir(), lines: make(chan string, 1024), background: map[string]int{}}
	cmd := exec.Command(bash, "--norc", "-e")
	if isolated() {
		cmd = exec.Command("unshare", "-rn", bash, "-c", "ip link set lo up; exec bash --norc -e")
	} else {
		needPorts(t)
	}
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), ours), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() { // ends when the shell and its children have closed their output
		defer close(s.lines)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		for name := range s.background {
			s.stop(name)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		r.Close()
		for range s.lines {
		}
	})
	return s
}

// ours says whether a variable of the environment would change what the
// commands do.
func ours(v string) bool { return strings.HasPrefix(v, "TRIPLINE_") || strings.HasPrefix(v, "NATS_") }

// isolated says whether a network namespace can be had.
func isolated() bool {
	return exec.Command("unshare", "-rn", "ip", "link", "set", "lo", "up").Run() == nil
}

func needPorts(t *testing.T) {
	t.Helper()
	for _, p := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:"+p)
		if err != nil {
			t.Skipf("no network namespace (unshare -rn), and port %s is in use", p)
		}
		l.Close()
	}
}

// script writes a block to a file, so that what it runs can't eat the rest.
func (s *session) script(b block) string {
	s.blocks++
	path := filepath.Join(s.scratch, fmt.Sprintf("block%d.sh", s.blocks))
	if err := os.WriteFile(path, []byte(b.text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// run runs a block and waits for its end.
func (s *session) run(b block) {
	s.t.Helper()
	s.tell("source %q </dev/null\nprintf '\\n%s\\n'\n", s.script(b), marker)
	s.output = s.await(b)
}

// launch runs a block in the background.
func (s *session) launch(b block) {
	s.t.Helper()
	name := b.info["background"]
	s.tell("setsid bash -e %q >%q 2>&1 </dev/null & echo %s$!\nprintf '\\n%s\\n'\n", s.script(b), s.logPath(name), "pid=", marker)
	var pid int
	if _, err := fmt.Sscanf(strings.TrimSpace(s.await(b)), "pid=%d", &pid); err != nil {
		s.t.Fatalf("%s: starting %s: %v", s.page.at(b.line), name, err)
	}
	s.background[name] = pid
	if until := b.info["until"]; until != "" {
		b.text = "…" + until + "…\n"
		s.expect(b, func() string { return s.log(name) })
	}
}

func (s *session) tell(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format, args...); err != nil {
		s.t.Fatalf("the shell is gone: %v", err)
	}
}

// await gathers output until the marker.
func (s *session) await(b block) string {
	s.t.Helper()
	var out strings.Builder
	timeout := time.After(blockWithin)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("%s failed:\n%s\n--- it said:\n%s%s", s.page.at(b.line), b.text, out.String(), s.logs())
			}
			if line == marker {
				return out.String()
			}
			out.WriteString(line + "\n")
		case <-timeout:
			s.t.Fatalf("%s has not ended within %v:\n%s\n--- it said:\n%s%s", s.page.at(b.line), blockWithin, b.text, out.String(), s.logs())
		}
	}
}

// expect waits until each line of the block is found in an output.
func (s *session) expect(b block, output func() string) {
	s.t.Helper()
	within := outputWithin
	if b.lang == "sh" {
		within = blockWithin // a background command may be built first
	}
	deadline := time.Now().Add(within)
	for line := range strings.SplitSeq(strings.TrimSpace(b.text), "\n") {
		for want := like(line); ; time.Sleep(50 * time.Millisecond) {
			if want.MatchString(output()) {
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("%s: the output has no line like\n%s\n--- it said:\n%s", s.page.at(b.line), line, output())
			}
		}
	}
}

// like makes a pattern of a line: … stands for anything, and runs of spaces
// are as good as one.
func like(line string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
	return regexp.MustCompile(`(?m)^\s*` + strings.ReplaceAll(strings.ReplaceAll(quoted, "…", ".*"), " ", `\s+`) + `\s*$`)
}

// obey does what a comment says.
func (s *session) obey(b block) {
	s.t.Helper()
	what, name, _ := strings.Cut(b.order, " ")
	if what != "stop" || s.background[name] == 0 {
		s.t.Fatalf("%s: unknown order %q", s.page.at(b.line), b.order)
	}
	s.stop(name)
}

// stop is Ctrl-C in a background command's terminal.
func (s *session) stop(name string) {
	pid := s.background[name]
	delete(s.background, name)
	_ = syscall.Kill(-pid, syscall.SIGINT)
	for deadline := time.Now().Add(15 * time.Second); syscall.Kill(-pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			return
		}
	}
}

func (s *session) logPath(name string) string { return filepath.Join(s.scratch, name+".log") }

func (s *session) log(name string) string {
	data, _ := os.ReadFile(s.logPath(name)) // not there yet is empty
	return string(data)
}

// logs are those of all background commands, for a failure's message.
func (s *session) logs() string {
	var all strings.Builder
	for name := range s.background {
		fmt.Fprintf(&all, "\n--- %s:\n%s", name, s.log(name))
	}
	return all.String()
}

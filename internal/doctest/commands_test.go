package doctest_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// command is a command line that a page shows.
type command struct {
	where string
	args  []string
}

var (
	ourCommand = regexp.MustCompile(`(?:^|[\s(|;&])(?:\./)?(?:bin/)?(?:tripline|go run \./cmd/tripline)((?:\s+(?:'[^']*'|"[^"]*"|[^\s|;&<>()'"#` + "`" + `]+))+)`)
	word       = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	verb       = regexp.MustCompile(`^[a-z]+$`)
)

// shown gathers each tripline command of a page: of its sh and console blocks
// and of its inline code.
func shown(p page) []command {
	var found []command
	add := func(line int, text string) {
		for _, m := range ourCommand.FindAllStringSubmatch(text, -1) {
			var args []string
			for _, w := range word.FindAllString(m[1], -1) {
				args = append(args, strings.Trim(w, `'"`))
			}
			if args[0] == "tripline" { // docker compose exec tripline tripline
				args = args[1:]
			}
			if strings.HasPrefix(args[0], "-") || verb.MatchString(args[0]) {
				found = append(found, command{p.at(line), args})
			}
		}
	}
	for _, b := range p.blocks {
		if b.lang != "sh" && b.lang != "console" && b.lang != "" {
			continue
		}
		heredoc := ""
		for i, line := range strings.Split(strings.ReplaceAll(b.text, "\\\n", "  "), "\n") {
			switch {
			case heredoc != "":
				if line == heredoc {
					heredoc = ""
				}
				continue
			case strings.Contains(line, "<<'EOF'"):
				heredoc = "EOF"
			}
			if code, _, isComment := strings.Cut(line, " #"); isComment {
				line = code
			}
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				add(b.line+i, line)
			}
		}
	}
	for _, s := range p.spans() {
		if strings.HasPrefix(s.text, "tripline ") || strings.HasPrefix(s.text, "./tripline ") {
			add(s.line, s.text)
		}
	}
	return found
}

// No page shows a command or a flag that isn't there. With --help behind it
// the parser reads the whole line, and runs nothing.
func TestCommandsExist(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := build(t, "./cmd/tripline")
	empty := t.TempDir()
	verdicts := map[string]string{} // of command lines that were tried
	var mu sync.Mutex
	var work sync.WaitGroup
	gate := make(chan struct{}, 4)
	n := 0
	for _, p := range pages(t) {
		for _, c := range shown(p) {
			n++
			line := strings.Join(c.args, " ")
			work.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				mu.Lock()
				verdict, known := verdicts[line]
				mu.Unlock()
				if !known {
					verdict = try(program, empty, c.args)
					mu.Lock()
					verdicts[line] = verdict
					mu.Unlock()
				}
				if verdict != "" {
					t.Errorf("%s: tripline %s: %s", c.where, line, verdict)
				}
			})
		}
	}
	work.Wait()
	if n < 30 {
		t.Errorf("only %d commands found in the pages", n)
	}
	t.Logf("%d command lines, %d of them different", n, len(verdicts))
}

// try returns what the parser says against a command line, or "".
func try(program, dir string, args []string) string {
	cmd := exec.Command(program, append(args, "--help")...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir}
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Contains(string(out), "no such file or directory") {
		return "" // flags for files look whether the file is there
	}
	return strings.TrimSpace(string(out))
}

// TestCommandsExist would pass if it found nothing wrong because it looks at
// nothing.
func TestCommandsAreSeen(t *testing.T) {
	p := page{path: "x.md", blocks: []block{{line: 10, lang: "sh", text: "cd x && ./tripline run -c a.yaml &\nsource <(tripline completion bash)\ncat <<'EOF'\ntripline nothing\nEOF\ntripline send \\\n  van-1 1 2   # tripline comment\n"}},
		prose: "`tripline tail --json` and `tripline.tick.<k>`, and `go run ./cmd/tripline demo`, tripline in words"}
	var got []string
	for _, c := range shown(p) {
		got = append(got, strings.Join(c.args, " "))
	}
	want := "run -c a.yaml|completion bash|send van-1 1 2|tail --json"
	if strings.Join(got, "|") != want {
		t.Errorf("found %q, want %q", strings.Join(got, "|"), want)
	}
}

// Other programs that pages may tell readers to run. What isn't here is
// either run by a test or has no place in a page.
var others = map[string]bool{
	"go": true, "git": true, "docker": true, "docker-compose": true, "cd": true, "cat": true, "mkdir": true, "sed": true,
	"sudo": true, "systemctl": true, "journalctl": true, "curl": true, "nats": true, "nats-server": true, "openssl": true,
	"python3": true, "node": true, "promtool": true, "mosquitto_pub": true, "source": true, "deploy/release.sh": true, "kill": true,
	"install": true, "cp": true, "tar": true, "sleep": true, "rm": true, "redis-cli": true, "tile38-server": true, "tile38-cli": true, "echo": true,
	"tripline": true, "./tripline": true, "sha256sum": true,
}

// Each file that a command or a sentence names is there.
func TestFilesExist(t *testing.T) {
	named := regexp.MustCompile(`(?:^|[\s"'=(])((?:\./)?(?:docs|deploy|examples|cmd|internal|bench|geofence|router|fallback|breaker)/[A-Za-z0-9_./*-]*)`)
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" {
			continue // it tells of what was
		}
		texts := map[int]string{}
		for _, b := range p.blocks {
			texts[b.line] += b.text
		}
		for _, s := range p.spans() {
			texts[s.line] += " " + s.text
		}
		for line, text := range texts {
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				name := strings.TrimRight(m[1], "./*")
				if found, _ := filepath.Glob(filepath.Join(root, name)); len(found) == 0 {
					t.Errorf("%s names %s, which isn't there", p.at(line), m[1])
				}
			}
		}
	}
}

// Programs in sh blocks are known ones, so that a typing error shows.
func TestProgramsAreKnown(t *testing.T) {
	first := regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(\S+)`)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.lang != "sh" {
				continue
			}
			for i, line := range commandLines(b.text) {
				if m := first.FindStringSubmatch(line); m != nil && !others[m[1]] {
					t.Errorf("%s: %s is no program that the pages know", p.at(b.line+i), m[1])
				}
			}
		}
	}
}

// commandLines are a block's lines without comments, continuations and what
// stands in here-documents.
func commandLines(text string) []string {
	var found []string
	here, continued := "", false
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case here != "":
			if trimmed == here {
				here = ""
			}
		case continued, trimmed == "", strings.HasPrefix(trimmed, "#"):
			continued = strings.HasSuffix(trimmed, "\\")
		default:
			found = append(found, trimmed)
			continued = strings.HasSuffix(trimmed, "\\")
			if strings.Contains(trimmed, "<<'EOF'") {
				here = "EOF"
			}
		}
	}
	return found
}

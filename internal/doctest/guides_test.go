package doctest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const home = "https://github.com/tripline/tripline"

// fromHere has git take the working repository where a page says the public
// one, so that the page's own git clone runs.
func fromHere(t *testing.T) []string {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(here, ".git")); err != nil {
		t.Skip("no git repository here to clone")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	return []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url.file://" + here + ".insteadOf", "GIT_CONFIG_VALUE_0=" + home,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}
}

// The page's commands, verbatim, in a fresh clone of the last commit; and
// there, what the README begins with.
func TestGettingStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a fresh clone")
	}
	dir, env := t.TempDir(), fromHere(t)
	t.Run("getting-started", func(t *testing.T) {
		began := time.Now()
		follow(t, read(t, "docs/getting-started.md"), dir, env...)
		took := time.Since(began)
		t.Logf("docs/getting-started.md: from a fresh clone to the end in %.0f s, without the download of modules", took.Seconds())
		if took > 10*time.Minute {
			t.Errorf("it promises 10 minutes, and took %v", took)
		}
	})
	t.Run("README", func(t *testing.T) {
		if t.Failed() {
			return
		}
		follow(t, firstTrigger(t), filepath.Join(dir, "tripline"), env...)
	})
}

// firstTrigger is the README's block of three commands for three terminals.
func firstTrigger(t *testing.T) page {
	p := read(t, "README.md")
	for _, b := range p.blocks {
		if b.lang != "sh" || !strings.Contains(b.text, "cmd/tripline send") {
			continue
		}
		lines := commandLines(b.text)
		if len(lines) != 3 {
			t.Fatalf("%s: %d commands, not three", p.at(b.line), len(lines))
		}
		p.blocks = []block{
			{line: b.line, lang: "sh", text: lines[0], info: settings(`background=service until="msg=running"`)},
			{line: b.line + 1, lang: "sh", text: lines[1], info: settings(`background=consumer until="listening"`)},
			{line: b.line + 2, lang: "sh", text: lines[2]},
			{line: b.line + 2, lang: "text", text: "ok: stored as …, … transition…"},
			{line: b.line + 2, lang: "text", text: "… van-1 enter Central station", info: settings("of=consumer")},
		}
		return p
	}
	t.Fatal("the README does not show a first trigger")
	return p
}

// workspace is a folder as the guides leave it to their readers: the examples
// and a built ./tripline, of the working tree.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(build(t, "./cmd/tripline"), filepath.Join(dir, "tripline")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The guides that go on from there.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := workspace(t)
	for _, path := range []string{"docs/owntracks.md", "docs/migrating-from-tile38.md"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			follow(t, read(t, path), dir)
		})
	}
}

package doctest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A release for this machine holds a static binary that knows its version.
func TestReleaseBuildsOneTarget(t *testing.T) {
	if os.Getenv("TRIPLINE_TEST_RELEASE") == "" {
		t.Skip("builds everything anew; TRIPLINE_TEST_RELEASE=1 runs it")
	}
	dist := t.TempDir()
	target := strings.Split(strings.TrimSpace(output(t, "go", "env", "GOOS", "GOARCH")), "\n")
	cmd := exec.Command("bash", "deploy/release.sh", "v9.8.7-test", target[0]+"/"+target[1])
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "DIST="+dist)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("release.sh: %v\n%s", err, out)
	}
	name := "tripline_9.8.7-test_" + target[0] + "_" + target[1]
	run := func(args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dist
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if _, err := exec.LookPath("sha256sum"); err == nil {
		run("sha256sum", "--check", "checksums.txt")
	}
	run("tar", "-xzf", name+".tar.gz")
	if got := run("./"+name+"/tripline", "version"); !strings.HasPrefix(got, "tripline v9.8.7-test "+target[0]+"/"+target[1]) {
		t.Errorf("its version says %q", got)
	}
	if kind, err := exec.LookPath("file"); err == nil && target[0] == "linux" {
		if got := run(kind, name+"/tripline"); !strings.Contains(got, "statically linked") {
			t.Errorf("the binary is not static: %s", got)
		}
	}
}

// A release without a proper version builds nothing.
func TestReleaseNeedsAVersion(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3; rm"} {
		cmd := exec.Command("bash", "deploy/release.sh", version)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "DIST="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "usage:") {
			t.Errorf("version %q: %v %s", version, err, out)
		}
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

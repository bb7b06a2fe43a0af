package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a file system of that many bytes until the test ends, or
// skips the test.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no file system can be mounted here, so none can be filled: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// A disk that is full stops everything, visibly; once there is space again
// everything goes on by itself, and nothing that was acknowledged is lost. The
// service runs in a process of its own: a server that could not write leaves
// goroutines behind when it stops.
func TestAFullDiskIsShownAndLeftBehind(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 40<<20)
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), filepath.Join(filepath.Dir(path), "store"), filepath.Join(disk, "store"), 1)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	service := startChild(t, path)
	van := &alternator{js: connect(t, service.nats), begun: time.Now().Add(-time.Hour)}
	for deadline := time.Now().Add(patience); van.publish(t) == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages, and the disk is not full", van.sent)
		}
	}
	awaitReady(t, service.admin, "that the disk is full", func(ready bool, text string) bool {
		return !ready && strings.Contains(text, "make room")
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, service.admin, "that all is well again", func(ready bool, _ string) bool { return ready })
	full := van.sent
	for deadline := time.Now().Add(patience); van.sent < full+10; {
		if err := van.publish(t); err != nil && time.Now().After(deadline) {
			t.Fatalf("publishing after there is room again: %v", err)
		}
	}
	van.awaitAll(t, hook)
	t.Logf("full after %d messages, %d triggers in order at the end", full, van.sent)
}

package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// askReady returns the state and the text of /readyz.
func askReady(t *testing.T, admin string) (ready bool, text string) {
	t.Helper()
	resp, err := http.Get(admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode == http.StatusOK, string(body)
}

func awaitReady(t *testing.T, admin, what string, holds func(ready bool, text string) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ready, text := askReady(t, admin)
		if holds(ready, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readiness does not say %s within %v: %s", what, patience, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// alternator publishes a device that enters the yard and leaves it, by turns,
// in messages that are large.
type alternator struct {
	js    jetstream.JetStream
	begun time.Time
	sent  int // messages that are stored
}

func (a *alternator) publish(t *testing.T) error {
	lat := 52.5
	if a.sent%2 == 1 {
		lat = 51
	}
	ts := a.begun.Add(time.Duration(a.sent) * 10 * time.Millisecond).UnixMilli()
	payload := fmt.Appendf(nil, `{"lat":%v,"lon":4.5,"ts":%d,"props":{"x":%q}}`, lat, ts, strings.Repeat("x", 16_000))
	_, err := a.js.PublishMsg(t.Context(), &nats.Msg{Subject: "location.van-1", Data: payload},
		jetstream.WithMsgID(fmt.Sprint(a.sent)), jetstream.WithRetryAttempts(0))
	if err == nil {
		a.sent++
	}
	return err
}

// A disk that is full stops everything, visibly; once there is space again
// everything goes on by itself, and nothing that was acknowledged is lost. The
// service runs in a process of its own: a server that could not write leaves
// goroutines behind when it stops.
func TestAFullDiskIsShownAndLeftBehind(t *testing.T) {
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
	crossings := func(got []trigger) []string { // the stay during the outage is told, too
		return slices.DeleteFunc(list(got), func(tr string) bool { return strings.HasSuffix(tr, " dwell") })
	}
	got := hook.await(t, "last trigger", func(got []trigger) bool { return len(crossings(got)) >= van.sent })
	for i, tr := range crossings(got) {
		if want := [2]string{" yard enter", " yard exit"}[i%2]; !strings.HasSuffix(tr, want) {
			t.Fatalf("trigger %d of %d is %s, want%s", i, van.sent, tr, want)
		}
	}
	t.Logf("full after %d messages, %d triggers in order at the end", full, van.sent)
}

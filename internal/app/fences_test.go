package app_test

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/fencekv"
)

const circle = `{"type":"Feature","properties":{"radius_m":500,"name":"gate"},"geometry":{"type":"Point","coordinates":[10,50]}}`

// do makes a request and returns its status and body.
func do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestFencesChangeAtRunTime(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	withBucket := strings.Replace(string(config), "{file: city.geojson}", "{file: city.geojson}, {kv: true}", 1)
	if err := os.WriteFile(path, []byte(withBucket), 0o600); err != nil {
		t.Fatal(err)
	}
	service := start(t, path)
	js := connect(t, service.NATS)
	fences := service.Admin + "/api/v1/fences"
	expect := func(method, path, body string, status int, contains string) {
		t.Helper()
		got, text := do(t, method, fences+path, body)
		if got != status || !strings.Contains(text, contains) {
			t.Errorf("%s %s: %d %s; want %d with %q", method, path, got, text, status, contains)
		}
	}
	next := func(what, transition, fence, reason string) {
		t.Helper()
		hook.await(t, what, func(got []trigger) bool {
			return slices.ContainsFunc(got, func(g trigger) bool {
				return g.Data.Transition == transition && g.Data.Fence.ID == fence && g.Data.Reason == reason
			})
		})
	}

	if _, err := js.Conn().Request("tripline.submit.van-1", location(50, 10, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	expect("PUT", "/gate", circle, 200, `"source":"kv"`)
	// The device is judged against a new fence at its next fix.
	if _, err := js.Conn().Request("tripline.submit.van-1", location(50, 10, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	next("enter of a new fence", "enter", "gate", "")
	expect("GET", "/gate/devices", "", 200, `"device":"van-1"`)
	expect("GET", "", "", 200, `"yard"`)

	// A fence that moves away leaves the device outside, at once.
	expect("PUT", "/gate", strings.Replace(circle, "[10,50]", "[11,50]", 1), 200, "")
	next("exit of a moved fence", "exit", "gate", "fence_changed")

	// What others write into the bucket is taken up as well.
	kv, err := js.KeyValue(t.Context(), fencekv.BucketName("tripline"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "other", circle); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for status := 0; status != 200; {
		if status, _ = do(t, "GET", fences+"/other", ""); time.Now().After(deadline) {
			t.Fatal("a fence put into the bucket did not appear")
		}
	}
	if _, err := js.Conn().Request("tripline.submit.van-1", location(50, 10.001, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	next("enter of a fence from the bucket", "enter", "other", "")
	expect("DELETE", "/other", "", 200, "ok")
	next("exit of a deleted fence", "exit", "other", "fence_deleted")

	expect("PUT", "/yard", circle, 409, "comes from a file")
	expect("DELETE", "/yard", "", 409, "comes from a file")
	expect("DELETE", "/nowhere", "", 404, "no such fence")
	expect("GET", "/nowhere", "", 404, "no fence")
	expect("PUT", "/bad", `{"type":"Feature","properties":{},"geometry":{"type":"Polygon","coordinates":[[[0,0],[1,1],[0,1],[1,0],[0,0]]]}}`, 400, "crosses itself")
	expect("PUT", "/bad", `{"type":"Feature","id":"else"`, 400, "GeoJSON")
	heavy := strings.Replace(circle, `"name":"gate"`, `"manual":"`+strings.Repeat("x", 200<<10)+`"`, 1)
	expect("PUT", "/heavy", heavy, 400, "at most 160 KiB are allowed")
	for id, feature := range map[string]string{"heavy": heavy, "light": circle} { // past the API
		if _, err := kv.PutString(t.Context(), fencekv.Key(id), feature); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the light fence from the bucket", func() bool {
		status, _ := do(t, "GET", fences+"/light", "")
		return status == 200
	})
	expect("GET", "/heavy", "", 404, "no fence")
	expect("DELETE", "/light", "", 200, "ok")

	// All of it is still there after a restart; nothing is told twice.
	if err := service.stop(); err != nil {
		t.Fatal(err)
	}
	before := len(hook.triggers())
	service = start(t, path)
	fences = service.Admin + "/api/v1/fences"
	expect("GET", "/gate", "", 200, `"gate"`)
	expect("GET", "/other", "", 404, "no fence")
	if after := len(hook.triggers()); after != before {
		t.Errorf("a restart made %d triggers", after-before)
	}
}

// A file that can't be used is told, and so is that it can be used again, also
// where that changes no fence.
func TestABrokenFenceFileIsToldAndForgiven(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	city := filepath.Join(filepath.Dir(path), "city.geojson")
	lines := &logLines{}
	service := start(t, path, func(o *app.Options) { o.Log = slog.New(slog.NewTextHandler(lines, nil)) })
	for _, step := range []struct{ text, told string }{
		{"{", "the fences stay as they were"}, {square, "the fence files can be used again"},
	} {
		if err := os.WriteFile(city, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, step.told, func() bool { return strings.Contains(lines.String(), step.told) })
		if status, text := do(t, "GET", service.Admin+"/api/v1/fences/yard", ""); status != 200 {
			t.Errorf("%s: the fence is gone: %d %s", step.told, status, text)
		}
	}
}

// logLines is a log that can be read while it is written.
type logLines struct {
	mu  sync.Mutex // guards buf
	buf strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestWithoutABucketFencesAreReadOnly(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	service := start(t, squareService(t, hook.URL, true))
	if status, text := do(t, "PUT", service.Admin+"/api/v1/fences/gate", circle); status != 409 || !strings.Contains(text, "kv: true") {
		t.Errorf("PUT: %d %s; want 409 that says what to configure", status, text)
	}
}

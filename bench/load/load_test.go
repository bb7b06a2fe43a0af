package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The bench starts its processes by running itself: here that is the test's
// binary.
func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		if err := serve(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// small are options for a run of a few seconds.
func small(t *testing.T, args ...string) options {
	t.Helper()
	if testing.Short() {
		t.Skip("starts six processes")
	}
	t.Setenv("TMPDIR", t.TempDir()) // what is left there would fail the test below
	o, err := parse(append([]string{
		"--fences", "200", "--devices", "2000", "--time", "800ms", "--rounds", "1",
		"--json", filepath.Join(t.TempDir(), "figures.json"),
	}, args...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// figures runs the bench and returns what it wrote.
func figures(t *testing.T, o options) map[string]any {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), o, &out, t.Output())
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	return all
}

// number finds a figure by its path, as in core.ratio.
func number(t *testing.T, figures map[string]any, path string) float64 {
	t.Helper()
	var v any = figures
	for key := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	n, ok := v.(float64)
	if !ok {
		t.Errorf("%s is %v, want a number", path, v)
	}
	return n
}

// between holds a figure to bounds wide enough for a machine that is busy.
func between(t *testing.T, figures map[string]any, path string, low, high float64) {
	t.Helper()
	if v := number(t, figures, path); v < low || v > high {
		t.Errorf("%s is %v, want %v to %v", path, v, low, high)
	}
}

func TestFiguresAreThereAndSane(t *testing.T) {
	all := figures(t, small(t))
	for _, mode := range []string{"core", "durable"} {
		between(t, all, mode+".fixes_per_s", 500, 1e7)
		between(t, all, mode+".plain_per_s", 500, 1e8)
		between(t, all, mode+".ratio", 0.01, 5)
		between(t, all, mode+".cpu_ratio", 0.01, 2)
		between(t, all, mode+".transitions_per_fix", 0.0005, 0.05)
		between(t, all, mode+".allocs_per_fix", 0, 10)
		between(t, all, mode+".lost", 0, 0)
		between(t, all, mode+".cpu_us_per_fix", 0.1, 1000)
		between(t, all, mode+".rss_mb", 5, 2000)
		between(t, all, mode+".latency_ms.nats.count", 1, 1e6)
		between(t, all, mode+".latency_ms.webhook.count", 1, 1e6)
		between(t, all, mode+".plain_latency_ms.count", 1, 1e6)
	}
	p50, p99, p999 := number(t, all, "latency_ms.p50"), number(t, all, "latency_ms.p99"), number(t, all, "latency_ms.p999")
	if p50 <= 0 || p99 < p50 || p999 < p99 {
		t.Errorf("latencies are %v, %v, %v ms; they must be above 0 and rise", p50, p99, p999)
	}
	between(t, all, "allocs_per_fix", 0, 10)
}

func TestScheduleIsFoundAgainFromTheTimestamp(t *testing.T) {
	s := schedule{Start: 1_764_000_000_123_456_789, Interval: 1e9 / 173_000.0, Devices: 2000}
	for _, i := range []int{0, 1, 1999, 2000, 123_456, 1_000_000} {
		due := s.Start + int64(float64(i)*s.Interval)
		got, err := s.due(deviceName(i%s.Devices), due/1e6)
		if err != nil || got < due-1 || got > due+1 {
			t.Errorf("fix %d was due at %d; found %d, %v", i, due, got, err)
		}
	}
	if _, err := s.due("d0000000", s.Start/1e6-60_000); err == nil {
		t.Error("a fix of an earlier job was taken for one of this")
	}
	if _, err := s.due("van", s.Start/1e6); err == nil {
		t.Error("a device of another city was taken for one of this")
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range []string{
		"--mode fast", "--devices 10", "--fences 0", "--sinks smtp", "--time 0s", "--rounds 0", "--scale 0", "more",
		"--sizes 100x1000x1", "--growth --sizes 100x1000", "--growth --sizes 100x1000x1x1", "--growth --sizes 100x1000x20", "--growth --sizes 100x10x1",
	} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
}

func TestSizesPickRows(t *testing.T) {
	o, err := parse(strings.Fields("--growth --sizes 100x1000x1,2000x30000x100"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sizes(o)
	want := []growthRow{{Fences: 100, Devices: 1000, Consumers: 1}, {Fences: 2000, Devices: 30_000, Consumers: 100}}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("rows %v, %v; want %v", rows, err, want)
	}
}

func TestAProcessThatIsUnknownOrAskedForNonsenseSaysSo(t *testing.T) {
	if err := serve("painter", strings.NewReader(""), io.Discard); err == nil {
		t.Error("there is a painter")
	}
	var out strings.Builder
	in := `{"do":"listen","arg":"what"}` + "\n"
	if err := serve("plain", strings.NewReader(in), &out); err != nil || !strings.Contains(out.String(), "error") {
		t.Errorf("answered %q, %v; want an error in the answer", out.String(), err)
	}
	if err := serve("plain", strings.NewReader(`{"do":`), io.Discard); err == nil {
		t.Error("half a request was taken for the end")
	}
}

func TestProfileIsSortedByStage(t *testing.T) {
	var p profiler
	if _, err := p.start(t.Context(), struct{}{}); err != nil {
		t.Skip(err) // the test itself is being profiled
	}
	spin := time.Now()
	for c := (city{Seed: 1, Fences: 100, Devices: 1000, Share: 0.01}); time.Since(spin) < 200*time.Millisecond; {
		c.step()
	}
	sums, err := p.stop(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if sums.(map[string]int64)[stageOther] == 0 {
		t.Errorf("stages are %v, want what the test did under %q", sums, stageOther)
	}
	for want, frames := range map[string][]string{
		"match, track":  {"runtime.mallocgc", "github.com/tidwall/rtree.(*node).search", "github.com/tripline/tripline/router.(*Partition).judge"},
		"route, ledger": {"github.com/tripline/tripline/router.(*Partition).judge"},
		"sinks":         {"net/http.(*Client).do", "github.com/tripline/tripline/router/webhook.(*Sink).Deliver"},
		"nats client":   {"runtime.memmove", "github.com/nats-io/nats%2ego.(*Conn).readLoop"},
		stageGC:         {"runtime.scanobject", "runtime.gcBgMarkWorker"},
		stageSched:      {"runtime.futex", "runtime.schedule", "runtime.mcall"},
		stageOther:      {"main.main"},
	} {
		if got := stageOf(frames); got != want {
			t.Errorf("%v is %q, want %q", frames, got, want)
		}
	}
}

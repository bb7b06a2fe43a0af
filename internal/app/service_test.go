package app_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/ingest"
)

const square = `{"type":"FeatureCollection","features":[{"type":"Feature","id":"yard",
 "properties":{"tags":["depot"],"dwell":["1s"]},
 "geometry":{"type":"Polygon","coordinates":[[[4,52],[5,52],[5,53],[4,53],[4,52]]]}}]}`

const squareConfig = `
nats: {store_dir: "%s/store", listen: "127.0.0.1:0", max_store: 1GiB}
ingest: {durable: DURABLE, partitions: 4}
fences: [{file: city.geojson}]
admin: {listen: "127.0.0.1:0"}
consumers:
  - name: hook
    webhook: {url: "HOOK", timeout: 2s}
    breaker: {p99: 1s}
  - name: bus
    match: {transitions: [enter]}
    nats: {subject: "out.{transition}.{device}"}
`

func squareService(t *testing.T, hook string, durable bool) string {
	t.Helper()
	flag := "true"
	if !durable {
		flag = "false"
	}
	path := write(t, strings.NewReplacer("HOOK", hook, "DURABLE", flag).Replace(squareConfig))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "city.geojson"), []byte(square), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type submitAnswer struct {
	OK          bool
	Transitions int
	Reason      string
}

func TestSubmitIsAnsweredAfterTheFixWasJudged(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct {
		name    string
		durable bool
	}{{"durable", true}, {"core", false}} {
		t.Run(mode.name, func(t *testing.T) {
			hook := newHook(t)
			service := start(t, squareService(t, hook.URL, mode.durable))
			nc := connect(t, service.NATS).Conn()
			bus, err := nc.SubscribeSync("out.>")
			if err != nil {
				t.Fatal(err)
			}
			rejected, err := nc.SubscribeSync("tripline.rejected.>")
			if err != nil {
				t.Fatal(err)
			}
			submit := func(payload string) (a submitAnswer) {
				t.Helper()
				reply, err := nc.Request("tripline.submit.van-1", []byte(payload), patience)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(reply.Data, &a); err != nil {
					t.Fatalf("%s: %v", reply.Data, err)
				}
				return a
			}
			now := time.Now()
			inside := string(location(52.5, 4.5, now))
			for _, step := range []struct {
				what, payload string
				want          submitAnswer
			}{
				{"entering", inside, submitAnswer{OK: true, Transitions: 1}},
				{"the same again", inside, submitAnswer{Reason: "duplicate"}},
				{"an older one", string(location(52.5, 4.5, now.Add(-time.Minute))), submitAnswer{Reason: "late"}},
				{"one from tomorrow", string(location(52.5, 4.5, now.Add(24*time.Hour))), submitAnswer{Reason: "future"}},
				{"latitude 95", `{"lat":95,"lon":4.5}`, submitAnswer{Reason: "range"}},
				{"half a position", `{"lat":52.5}`, submitAnswer{Reason: "missing"}},
				{"no JSON", `lat=1`, submitAnswer{Reason: "malformed"}},
				{"leaving", string(location(51, 4.5, now.Add(time.Millisecond))), submitAnswer{OK: true, Transitions: 1}},
			} {
				if got := submit(step.payload); got != step.want {
					t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
				}
			}
			future, err := rejected.NextMsg(patience)
			if err != nil || future.Subject != "tripline.rejected.future" || future.Header.Get(ingest.SubjectHeader) != "location.van-1" ||
				!strings.Contains(future.Header.Get(ingest.DetailHeader), "more than tracking.max_future (5m0s)") ||
				!strings.HasPrefix(string(future.Data), `{"lat":52.5,"lon":4.5,"ts":`) || !json.Valid(future.Data) {
				t.Errorf("one from tomorrow is told as %+v, %v", future, err)
			}
			if mode.durable && err == nil && future.Header.Get(ingest.SequenceHeader) != "4" {
				t.Errorf("its sequence is told as %v", future.Header)
			}
			got := hook.await(t, "exit", func(got []trigger) bool { return len(got) == 2 })
			if got[0].Type != "dev.tripline.enter.v1" || got[1].Type != "dev.tripline.exit.v1" {
				t.Errorf("triggers are %s and %s, want an enter and an exit", got[0].Type, got[1].Type)
			}
			if !got[0].Data.Initial || got[0].Sequence >= got[1].Sequence {
				t.Errorf("the enter is initial: %t; sequences %q, %q must rise", got[0].Data.Initial, got[0].Sequence, got[1].Sequence)
			}
			msg, err := bus.NextMsg(patience)
			if err != nil || msg.Subject != "out.enter.van-1" {
				t.Errorf("on the bus: %v %v, want out.enter.van-1", msg, err)
			}
		})
	}
}

// A parked device that stops sending still dwells: ticks move the time on.
func TestDwellFiresWithoutFurtherFixes(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	service := start(t, squareService(t, hook.URL, true))
	nc := connect(t, service.NATS).Conn()
	if _, err := nc.Request("tripline.submit.van-1", location(52.5, 4.5, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	got := hook.await(t, "dwell", func(got []trigger) bool { return len(got) == 2 })
	if got[1].Data.Transition != "dwell" || got[1].Data.At.Sub(got[0].Data.At) != time.Second {
		t.Errorf("%s at %v after the enter, want a dwell after 1s", got[1].Data.Transition, got[1].Data.At.Sub(got[0].Data.At))
	}
}

func TestAdminShowsHealthMetricsAndConsumers(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	service := start(t, squareService(t, hook.URL, true))
	nc := connect(t, service.NATS).Conn()
	if _, err := nc.Request("tripline.submit.van-1", location(52.5, 4.5, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	hook.await(t, "enter", func(got []trigger) bool { return len(got) > 0 })

	// The consumer knows of a delivery before it is counted.
	awaitReadiness(t, service, "running", true, "")
	awaitConsumers(t, service, "delivery", func(c map[string]live.Consumer) bool { return c["hook"].DeliveredTotal > 0 })
	if ready := get[readiness](t, service.Admin+"/readyz"); !ready.Ready {
		t.Errorf("not ready: %+v", ready)
	}
	list := get[struct{ Consumers []live.Consumer }](t, service.Admin+"/api/v1/consumers").Consumers
	if len(list) != 2 || list[0].Name != "hook" || list[0].State != "closed" || list[0].P99LimitMS != 1000 {
		t.Errorf("consumers: %+v", list)
	}
	lines := []string{
		`tripline_fixes_total{result="accepted"} 1`,
		`tripline_transitions_total{transition="enter"} 1`,
		`tripline_deliveries_total{consumer="hook",outcome="ok"} `,
		`tripline_breaker_state{consumer="hook",state="closed"} 1`,
		`tripline_store_used_ratio{stream="TRIPLINE_STATE"} `,
		`tripline_progress_lag_seconds{partition="3"} `,
	}
	missing := func() []string {
		metrics := text(t, service.Admin+"/metrics")
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(metrics, "\n"+line) })
	}
	// How full the stores are is looked at now and then.
	for deadline := time.Now().Add(patience); len(missing()) > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("metrics lack %q", missing())
		}
	}
}

func text(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAFenceFileThatChangesIsTakenUp(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	service := start(t, path)
	nc := connect(t, service.NATS).Conn()
	if _, err := nc.Request("tripline.submit.van-1", location(52.5, 4.5, time.Now()), patience); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(path), "city.geojson")
	empty := `{"type":"FeatureCollection","features":[]}`
	if err := os.WriteFile(file, []byte(empty), 0o600); err != nil {
		t.Fatal(err)
	}
	got := hook.await(t, "exit", func(got []trigger) bool {
		return len(got) > 0 && got[len(got)-1].Data.Transition == "exit"
	})
	if last := got[len(got)-1]; last.Data.Reason != "fence_deleted" || last.Data.Fence.ID != "yard" {
		t.Errorf("exit from %q because of %q, want yard, fence_deleted", last.Data.Fence.ID, last.Data.Reason)
	}
}

func TestWhatIsInUseIsNamed(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	start(t, path)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct{ name, old, new, want string }{
		{"store", "max_store", "max_store", "store"},
		{"NATS port", `listen: "127.0.0.1:0", max`, `listen: "` + taken.Addr().String() + `", max`, "nats.listen"},
		{"admin port", `admin: {listen: "127.0.0.1:0"`, `admin: {listen: "` + taken.Addr().String() + `"`, "admin.listen"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(data), tc.old, tc.new, 1)
			if tc.name != "store" {
				text = strings.Replace(text, "/store", "/other-"+strings.ReplaceAll(tc.name, " ", "-"), 1)
			}
			cfg, err := config.Parse(path, []byte(text), config.WithDir(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			err = app.Run(t.Context(), cfg, app.Options{Version: "test", Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Run: %v; want one line that names %s", err, tc.want)
			}
		})
	}
}

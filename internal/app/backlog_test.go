package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/admin/live"
)

// stored is an entry of a listing.
type stored struct {
	Seq                               uint64
	ID, Device, Fence, Transition     string
	Reason, Error, Sequence, Priority string
	Attempts                          int
}

type listed struct {
	Items []stored
	Next  *uint64
}

func refuse(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func (v *traveller) tour(n int, devices ...string) {
	v.t.Helper()
	for range n {
		v.ts, v.in = v.ts.Add(time.Millisecond), !v.in
		lat := 51.0
		if v.in {
			lat = 52.5
		}
		for _, d := range devices {
			if _, err := v.nc.Request("tripline.submit."+d, location(lat, 4.5, v.ts), patience); err != nil {
				v.t.Fatal(err)
			}
		}
	}
}

// withoutDwell is a square service whose devices may stay as long as they like.
func withoutDwell(t *testing.T, hook string) string {
	t.Helper()
	path := squareService(t, hook, true)
	edit(t, filepath.Join(filepath.Dir(path), "city.geojson"), `,"dwell":["1s"]`, "")
	return path
}

// holds counts the messages of all streams in which a device is named.
func holds(t *testing.T, js jetstream.JetStream, device string) (n int) {
	t.Helper()
	streams := js.ListStreams(t.Context())
	for info := range streams.Info() {
		stream, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			msg, err := stream.GetMsg(t.Context(), seq)
			if err != nil {
				continue // deleted
			}
			if strings.Contains(fmt.Sprintf("%s %v %s", msg.Subject, msg.Header, msg.Data), device) {
				t.Logf("%s %d: %s", info.Config.Name, seq, msg.Subject)
				n++
			}
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParkedTriggersAreListedShownAndPurged(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(refuse(500))
	service := start(t, withoutDwell(t, hook.URL))
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	van.tour(10, "van-1", "van-2")
	awaitConsumers(t, service, "backlog", func(c map[string]live.Consumer) bool { return c["hook"].Backlog.Items == 20 })
	base := service.Admin + "/api/v1/consumers/hook/fallback"

	seen := 0
	for after := uint64(0); ; {
		page := get[listed](t, fmt.Sprintf("%s?limit=6&after=%d", base, after))
		for _, i := range page.Items {
			if i.Seq <= after || i.Fence != "yard" || i.ID == "" || i.Reason == "" {
				t.Errorf("after %d came %+v", after, i)
			}
			after = i.Seq
			seen++
		}
		if page.Next == nil {
			break
		}
		if len(page.Items) != 6 || *page.Next != after {
			t.Errorf("a page of %d, next %d; want 6, and %d", len(page.Items), *page.Next, after)
		}
	}
	if seen != 20 {
		t.Errorf("the pages have %d entries, want 20", seen)
	}
	first := get[listed](t, base+"?device=van-2").Items[0]
	if status, text := do(t, "GET", fmt.Sprintf("%s/%d", base, first.Seq), ""); status != 200 || !strings.Contains(text, `"specversion":"1.0"`) {
		t.Errorf("show: %d %s; want its body", status, text)
	}
	for _, tc := range []struct {
		method, path string
		status       int
		contains     string
	}{
		{"GET", "?devcie=van-1", 400, "unknown parameter"},
		{"GET", "?limit=0", 400, "1 to 1000"},
		{"GET", "?older_than=soon", 400, "duration"},
		{"GET", "/9999999", 404, "there is no"},
		{"GET", "/x", 400, "no seq"},
		{"DELETE", "", 400, "all=true"},
		{"DELETE", "?device=van-1&all=true", 400, "say what is meant"},
		{"DELETE", "?older_than=1h", 200, `"purged":0`},
		{"DELETE", fmt.Sprintf("/%d", first.Seq), 200, `"purged":1`},
		{"DELETE", fmt.Sprintf("/%d", first.Seq), 404, "there is no"},
		{"DELETE", "?device=van-1", 200, `"purged":10`},
	} {
		if status, text := do(t, tc.method, base+tc.path, ""); status != tc.status || !strings.Contains(text, tc.contains) {
			t.Errorf("%s %s: %d %s; want %d with %q", tc.method, tc.path, status, text, tc.status, tc.contains)
		}
	}
	hook.answers(nil)
	got := hook.await(t, "rest of the backlog", func(got []trigger) bool { return len(got) == 9 })
	for i, g := range got {
		if g.Data.Device != "van-2" || g.ID == first.ID || i > 0 && g.Sequence <= got[i-1].Sequence {
			t.Errorf("delivered %+v, want the rest of van-2's in order", g)
		}
	}
	awaitConsumers(t, service, "empty backlog", func(c map[string]live.Consumer) bool { return c["hook"].Backlog.Items == 0 })
}

func TestDeadLettersAreRedrivenInOrderAndMarked(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(refuse(422)) // it will never take them
	service := start(t, withoutDwell(t, hook.URL))
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	van.tour(5, "van-1", "van-2")
	base := service.Admin + "/api/v1/consumers/hook/dead"
	awaitConsumers(t, service, "dead letters", func(c map[string]live.Consumer) bool { return c["hook"].DeadTotal == 10 })
	letters := get[listed](t, base+"?device=van-1").Items
	if len(letters) != 5 || letters[0].Reason != "rejected" || letters[0].Attempts != 1 || !strings.Contains(letters[0].Error, "422") {
		t.Fatalf("dead letters: %+v", letters)
	}
	// Redriven while it still refuses, each dies again, once.
	if status, text := do(t, "POST", base+"/redrive?device=van-1", ""); status != 200 || !strings.Contains(text, `"redriven":5`) {
		t.Errorf("redrive: %d %s", status, text)
	}
	awaitConsumers(t, service, "new dead letters", func(map[string]live.Consumer) bool {
		now := get[listed](t, base+"?device=van-1").Items
		return len(now) == 5 && now[0].Seq > letters[4].Seq
	})
	hook.answers(nil)
	if status, text := do(t, "POST", base+"/redrive?device=van-1", ""); status != 200 || !strings.Contains(text, `"redriven":5`) {
		t.Errorf("redrive: %d %s", status, text)
	}
	got := hook.await(t, "redriven triggers", func(got []trigger) bool { return len(got) == 5 })
	for i, g := range got {
		if g.ID != letters[i].ID || !g.Redriven {
			t.Errorf("delivered %s, redriven %t; want %s, marked", g.ID, g.Redriven, letters[i].ID)
		}
	}
	rest := get[listed](t, base).Items
	if len(rest) != 5 || rest[0].Device != "van-2" {
		t.Fatalf("left are %+v, want those of van-2", rest)
	}
	if status, text := do(t, "DELETE", fmt.Sprintf("%s/%d", base, rest[0].Seq), ""); status != 200 {
		t.Errorf("purge of one: %d %s", status, text)
	}
	if status, text := do(t, "POST", fmt.Sprintf("%s/%d/redrive", base, rest[1].Seq), ""); status != 200 {
		t.Errorf("redrive of one: %d %s", status, text)
	}
	if status, text := do(t, "DELETE", base+"?fence=yard", ""); status != 200 || !strings.Contains(text, `"purged":3`) {
		t.Errorf("purge: %d %s", status, text)
	}
	if left := get[listed](t, base).Items; len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

func TestAForgottenDeviceLeavesNothing(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(refuse(422))
	path := withoutDwell(t, hook.URL)
	service := start(t, path)
	js := connect(t, service.NATS)
	van := &traveller{t: t, nc: js.Conn(), ts: time.Now()}
	van.tour(4, "van-1", "van-2") // become dead letters
	awaitConsumers(t, service, "dead letters", func(c map[string]live.Consumer) bool { return c["hook"].DeadTotal == 8 })
	hook.answers(refuse(500))
	van.tour(9, "van-1", "van-2") // are parked; both devices end inside
	awaitConsumers(t, service, "backlog", func(c map[string]live.Consumer) bool { return c["hook"].Backlog.Items == 18 })

	device := service.Admin + "/api/v1/devices/van-1"
	if status, text := do(t, "GET", device, ""); status != 200 || !strings.Contains(text, `"fence":"yard"`) || !strings.Contains(text, `"lat":52.5`) {
		t.Errorf("device: %d %s", status, text)
	}
	if holds(t, js, "van-1") == 0 {
		t.Fatal("nothing is stored of the device")
	}
	kept := holds(t, js, "van-2")
	status, text := do(t, "DELETE", device, "")
	for _, want := range []string{`"known":true`, `"locations":13`, `"parked":9`, `"dead":4`} {
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("forget: %d %s; want %s", status, text, want)
		}
	}
	if n := holds(t, js, "van-1"); n != 0 {
		t.Errorf("%d messages still name the device", n)
	}
	if n := holds(t, js, "van-2"); n != kept {
		t.Errorf("%d messages of the other device are left of %d", n, kept)
	}
	if status, text := do(t, "GET", device, ""); status != 404 {
		t.Errorf("device: %d %s; want 404", status, text)
	}
	if status, text := do(t, "DELETE", device, ""); status != 200 || !strings.Contains(text, `"known":false`) {
		t.Errorf("forget again: %d %s", status, text)
	}
	// It stays forgotten after a restart.
	if err := service.stop(); err != nil {
		t.Fatal(err)
	}
	hook.answers(nil)
	service = start(t, path)
	got := hook.await(t, "backlog of the other device", func(got []trigger) bool { return len(got) == 9 })
	for _, g := range got {
		if g.Data.Device != "van-2" {
			t.Errorf("delivered %+v", g)
		}
	}
	if status, text := do(t, "GET", service.Admin+"/api/v1/devices/van-1", ""); status != 404 {
		t.Errorf("device after a restart: %d %s; want 404", status, text)
	}
}

func TestARemovedConsumerLeavesAnOrphan(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(refuse(500))
	path := withoutDwell(t, hook.URL)
	service := start(t, path)
	js := connect(t, service.NATS)
	van := &traveller{t: t, nc: js.Conn(), ts: time.Now()}
	van.tour(5, "van-1", "van-2")
	awaitConsumers(t, service, "backlog", func(c map[string]live.Consumer) bool { return c["hook"].Backlog.Items == 10 })
	orphans := service.Admin + "/api/v1/orphans"
	if status, text := do(t, "GET", orphans, ""); status != 200 || !strings.Contains(text, `"orphans":[]`) {
		t.Errorf("orphans: %d %s; want none", status, text)
	}
	if status, text := do(t, "DELETE", orphans+"/hook", ""); status != 409 {
		t.Errorf("removing a configured consumer's: %d %s; want 409", status, text)
	}
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(config), "  - name: hook")
	_, bus, _ := strings.Cut(rest, "  - name: bus")
	if err := os.WriteFile(path, []byte(before+"  - name: bus"+bus), 0o600); err != nil {
		t.Fatal(err)
	}
	reload(t, service, 200, "ok")
	if status, text := do(t, "GET", orphans, ""); status != 200 || !strings.Contains(text, `"consumer":"hook","items":10`) {
		t.Errorf("orphans: %d %s; want the hook's ten", status, text)
	}
	// A device's triggers are forgotten in an orphan too.
	if status, text := do(t, "DELETE", service.Admin+"/api/v1/devices/van-1", ""); status != 200 || !strings.Contains(text, `"parked":5`) {
		t.Errorf("forget: %d %s; want five parked", status, text)
	}
	if n := holds(t, js, "van-1"); n != 0 {
		t.Errorf("%d messages still name the device", n)
	}
	if status, text := do(t, "DELETE", orphans+"/hook", ""); status != 200 || !strings.Contains(text, `"items":5`) {
		t.Errorf("removing it: %d %s", status, text)
	}
	if status, text := do(t, "DELETE", orphans+"/hook", ""); status != 404 {
		t.Errorf("removing it twice: %d %s; want 404", status, text)
	}
	if _, err := js.Stream(t.Context(), "TRIPLINE_FALLBACK_hook"); err == nil {
		t.Error("the stream is still there")
	}
}

package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

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

// awaitAll returns once the hook has got the enter or exit that each message
// made, in order.
func (a *alternator) awaitAll(t *testing.T, h *hook) {
	t.Helper()
	got := h.await(t, "last trigger", func(got []trigger) bool { return len(crossings(got)) >= a.sent })
	for i, tr := range crossings(got) {
		if want := [2]string{" yard enter", " yard exit"}[i%2]; !strings.HasSuffix(tr, want) {
			t.Fatalf("trigger %d of %d is %s, want%s", i, a.sent, tr, want)
		}
	}
}

// crossings are the enters and exits, each once. A stay that an outage made
// long is told, too.
func crossings(got []trigger) []string {
	return slices.DeleteFunc(list(got), func(tr string) bool { return strings.HasSuffix(tr, " dwell") })
}

const smallQueueConfig = `
nats: {store_dir: "%s/store", listen: "127.0.0.1:0", max_store: 1GiB}
ingest: {partitions: 2}
fences: [{file: city.geojson}]
admin: {listen: "127.0.0.1:0"}
consumers:
  - name: sick
    match: {transitions: [enter, exit]}
    webhook: {url: "SICK", timeout: 2s}
    breaker: {p99: 1s, base: 200ms, max: 500ms}
    fallback: {max_bytes: 512KiB, on_full: ON_FULL}
  - name: well
    match: {transitions: [enter, exit]}
    webhook: {url: "WELL", timeout: 2s}
    breaker: {p99: 1s}
`

// overfill starts a service whose sick consumer has a small queue, and
// publishes more than that and the memory for what waits can hold.
func overfill(t *testing.T, onFull string) (service running, van *alternator, sick, well *hook) {
	t.Helper()
	sick, well = newHook(t), newHook(t)
	sick.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	path := write(t, strings.NewReplacer("SICK", sick.URL, "WELL", well.URL, "ON_FULL", onFull).Replace(smallQueueConfig))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "city.geojson"), []byte(square), 0o600); err != nil {
		t.Fatal(err)
	}
	service = start(t, path)
	van = &alternator{js: connect(t, service.NATS), begun: time.Now().Add(-time.Hour)}
	for range 1000 {
		if err := van.publish(t); err != nil {
			t.Fatal(err)
		}
	}
	return service, van, sick, well
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
	eventually(t, "readiness says "+what, func() bool { return holds(askReady(t, admin)) })
}

// eventually returns once it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// counter is the sum of a metric of a consumer.
func counter(t *testing.T, service running, name, consumer string) (sum int) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text(t, service.Admin+"/metrics")))
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, `consumer="`+consumer+`"`) {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += int(v)
	}
	return sum
}

// R16: a full queue that blocks makes everything wait, says so, and loses
// nothing.
func TestR16_AFullQueueThatBlocksHoldsEverythingUpVisibly(t *testing.T) {
	t.Parallel()
	service, van, sick, well := overfill(t, "block")
	awaitReady(t, service.Admin, "that the queue of sick is full", func(ready bool, text string) bool {
		return !ready && strings.Contains(text, "consumer sick") && strings.Contains(text, "on_full: block")
	})
	if n := len(crossings(well.triggers())); n == van.sent {
		t.Error("nothing waited")
	}
	sick.answers(nil)
	van.awaitAll(t, sick)
	van.awaitAll(t, well)
	awaitReady(t, service.Admin, "that all is well", func(ready bool, _ string) bool { return ready })
}

// R16: a full queue may make room with its oldest, which are kept as dead
// letters and can be sent again.
func TestR16_AFullQueueThatBuriesCanBeRedriven(t *testing.T) {
	t.Parallel()
	service, van, sick, well := overfill(t, "dead")
	van.awaitAll(t, well)
	dead := func() int { return counter(t, service, "tripline_dead_letters_total", "sick") }
	eventually(t, "there are dead letters", func() bool { return dead() > 0 })
	if ready, text := askReady(t, service.Admin); !ready {
		t.Errorf("not ready: %s", text)
	}
	sick.answers(nil)
	eventually(t, "what is not dead is delivered", func() bool { return len(crossings(sick.triggers()))+dead() == van.sent })
	buried := dead()
	if status, text := do(t, "POST", service.Admin+"/api/v1/consumers/sick/redrive", ""); status != http.StatusOK {
		t.Fatalf("redrive: %d %s", status, text)
	}
	sick.await(t, "what was dead", func(got []trigger) bool { return len(crossings(got)) == van.sent })
	t.Logf("%d of %d were dead letters", buried, van.sent)
}

// R16: a full queue may drop the newest, and counts them.
func TestR16_AFullQueueThatDropsCountsThem(t *testing.T) {
	t.Parallel()
	service, van, sick, well := overfill(t, "drop")
	van.awaitAll(t, well)
	dropped := func() int { return counter(t, service, "tripline_dropped_total", "sick") }
	eventually(t, "some are dropped", func() bool { return dropped() > 0 })
	sick.answers(nil)
	eventually(t, "the rest is delivered", func() bool { return len(crossings(sick.triggers()))+dropped() == van.sent })
	last := ""
	for _, tr := range sick.triggers() {
		if tr.Sequence <= last {
			t.Fatalf("sequence %s after %s", tr.Sequence, last)
		}
		last = tr.Sequence
	}
	t.Logf("%d of %d were dropped", dropped(), van.sent)
}

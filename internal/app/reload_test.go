package app_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/admin/live"
)

// edit changes a configuration file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// traveller moves a device in and out of the yard.
type traveller struct {
	t  *testing.T
	nc *nats.Conn
	ts time.Time
	in bool
}

// move submits the next fix and returns once it has been judged.
func (v *traveller) move(device string) {
	v.t.Helper()
	v.ts = v.ts.Add(time.Millisecond)
	v.in = !v.in
	lat := 51.0
	if v.in {
		lat = 52.5
	}
	reply, err := v.nc.Request("tripline.submit."+device, location(lat, 4.5, v.ts), patience)
	if err != nil {
		v.t.Fatal(err)
	}
	if !strings.Contains(string(reply.Data), `"transitions":1`) {
		v.t.Fatalf("a move made no transition: %s", reply.Data)
	}
}

func consumers(t *testing.T, service running) map[string]live.Consumer {
	t.Helper()
	byName := map[string]live.Consumer{}
	for _, c := range get[struct{ Consumers []live.Consumer }](t, service.Admin+"/api/v1/consumers").Consumers {
		byName[c.Name] = c
	}
	return byName
}

// awaitConsumers returns once the consumers are as until wants them.
func awaitConsumers(t *testing.T, service running, what string, until func(map[string]live.Consumer) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		now := consumers(t, service)
		if until(now) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %v: %+v", what, patience, now)
		}
		runtime.Gosched()
	}
}

func reload(t *testing.T, service running, status int, contains string) {
	t.Helper()
	if got, text := do(t, "POST", service.Admin+"/api/v1/reload", ""); got != status || !strings.Contains(text, contains) {
		t.Fatalf("reload: %d %s; want %d with %q", got, text, status, contains)
	}
}

// R14: a reload loses nothing in flight, resets no breaker that it doesn't
// touch, and keeps the backlog of a removed consumer.
func TestR14_ReloadDropsNothing(t *testing.T) {
	t.Parallel()
	first, second := newHook(t), newHook(t)
	path := squareService(t, first.URL, true)
	service := start(t, path)
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}

	van.move("van-1")
	first.await(t, "enter", func(got []trigger) bool { return len(got) == 1 })

	// A consumer that changes, one that is added, and one that stays.
	if status, text := do(t, "POST", service.Admin+"/api/v1/consumers/bus/open", ""); status != 200 {
		t.Fatalf("opening the bus's breaker: %d %s", status, text)
	}
	awaitConsumers(t, service, "open breaker", func(c map[string]live.Consumer) bool { return c["bus"].State == "open" })
	edit(t, path, first.URL, second.URL)
	edit(t, path, "consumers:\n", "consumers:\n  - name: added\n    match: {transitions: [exit]}\n    webhook: {url: \""+first.URL+"\"}\n")
	stop := make(chan struct{})
	moved := make(chan int)
	go func() { // locations go on coming while the consumers change
		n := 0
		for {
			select {
			case <-stop:
				moved <- n
				return
			default:
				van.move("van-1")
				n++
			}
		}
	}()
	reload(t, service, 200, "ok")
	close(stop)
	n := <-moved + 1
	awaitConsumers(t, service, "list of three", func(c map[string]live.Consumer) bool { return len(c) == 3 })
	if state := consumers(t, service)["bus"].State; state == "closed" {
		t.Error("the reload has closed the breaker of a consumer that it doesn't touch")
	}
	second.await(t, "triggers of the changed consumer", func([]trigger) bool {
		ids := map[string]bool{} // what hook got, at the one address and then the other
		for _, g := range slices.Concat(first.triggers(), second.triggers()) {
			ids[g.ID] = true
		}
		return len(ids) == n
	})
	sequence := ""
	for _, g := range second.triggers() {
		if g.Sequence <= sequence {
			t.Errorf("sequence %s came after %s", g.Sequence, sequence)
		}
		sequence = g.Sequence
	}

	// What is wrong, or takes a restart, changes nothing.
	edit(t, path, "name: bus", "nmae: bus")
	reload(t, service, 409, "nmae")
	edit(t, path, "nmae: bus", "name: bus")
	edit(t, path, "partitions: 4", "partitions: 8")
	reload(t, service, 409, "takes a restart")
	edit(t, path, "partitions: 8", "partitions: 4")

	// A removed consumer's backlog stays for one of its name.
	second.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	for range 20 {
		van.move("van-1")
	}
	awaitConsumers(t, service, "backlog", func(c map[string]live.Consumer) bool { return c["hook"].Backlog.Items >= 20 })
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, path, fmt.Sprintf("  - name: hook\n    webhook: {url: %q, timeout: 2s}\n    breaker: {p99: 1s}\n", second.URL), "")
	reload(t, service, 200, "ok")
	awaitConsumers(t, service, "removal", func(c map[string]live.Consumer) bool { _, still := c["hook"]; return !still })
	second.answers(nil)
	before := len(second.triggers())
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	reload(t, service, 200, "ok")
	second.await(t, "backlog", func(got []trigger) bool { return len(got) >= before+20 })
}

// A consumer that answered 410 Gone is off until a reload.
func TestReloadCallsAGoneConsumerAgain(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	service := start(t, squareService(t, hook.URL, true))
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	van.move("van-1")
	awaitConsumers(t, service, "disabled consumer", func(c map[string]live.Consumer) bool { return c["hook"].Disabled })
	van.move("van-1")
	hook.answers(nil)
	reload(t, service, 200, "ok")
	hook.await(t, "both triggers", func(got []trigger) bool { return len(got) == 2 })
}

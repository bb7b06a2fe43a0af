package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/natstest"
)

// The tests for leaks do a thing a number of times and look at what the
// process holds before and after. They are short by default; what is promised
// is held to with
//
//	TRIPLINE_LEAKS=1000 go test -timeout 30m -run Leak ./internal/app
func times(t *testing.T, short int) int {
	t.Helper()
	text := os.Getenv("TRIPLINE_LEAKS")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TRIPLINE_LEAKS=%q: give a number", text)
	}
	return n
}

// footprint is what a process holds.
type footprint struct {
	goroutines, files int // files: also sockets; 0 where they can't be counted
}

func measure() footprint {
	http.DefaultClient.CloseIdleConnections()
	f := footprint{goroutines: runtime.NumGoroutine()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.files = len(list)
	}
	return f
}

// slack is what may be there by chance: a connection that is being closed, a
// block of a stream that is open. A leak grows with what is done.
const slack = 12

// checkLeaks warms up, does it n times and then waits for the process to hold
// no more than before.
func checkLeaks(t *testing.T, n int, do func(i int)) {
	t.Helper()
	for i := range 5 {
		do(i)
	}
	before := measure()
	for i := range n {
		do(i)
	}
	var after footprint
	eventually(t, "what is held is what was held", func() bool {
		after = measure()
		return after.goroutines <= before.goroutines+slack && after.files <= before.files+slack
	})
	t.Logf("%d times: %+v, before %+v", n, after, before)
}

func TestLeaksOfReloads(t *testing.T) {
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	service := start(t, path)
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkLeaks(t, times(t, 60), func(i int) {
		// Another outlet for both consumers each time, with its connections.
		text := strings.NewReplacer(
			"timeout: 2s", fmt.Sprintf("timeout: %ds", 2+i%3),
			"out.{transition}", fmt.Sprintf("out%d.{transition}", i%2),
		).Replace(string(original))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		reload(t, service, http.StatusOK, "true")
		seen := len(hook.triggers())
		van.move("van-1")
		hook.await(t, "trigger after the reload", func(got []trigger) bool { return len(got) > seen })
	})
}

func TestLeaksOfTrips(t *testing.T) {
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	edit(t, path, "breaker: {p99: 1s}", "breaker: {p99: 1s, base: 10ms, max: 20ms}")
	service := start(t, path)
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	checkLeaks(t, times(t, 30), func(int) {
		act(t, service, "hook", "open")
		seen := len(crossings(hook.triggers()))
		for range 6 {
			van.move("van-1")
		}
		act(t, service, "hook", "probe")
		hook.await(t, "triggers that were parked", func(got []trigger) bool { return len(crossings(got)) >= seen+6 })
		awaitConsumers(t, service, "closed breaker", func(c map[string]live.Consumer) bool {
			return c["hook"].State == "closed" && c["hook"].Backlog.Items == 0
		})
	})
}

func act(t *testing.T, service running, consumer, action string) {
	t.Helper()
	if status, text := do(t, "POST", service.Admin+"/api/v1/consumers/"+consumer+"/"+action, ""); status != http.StatusOK {
		t.Fatalf("%s of %s: %d %s", action, consumer, status, text)
	}
}

func TestLeaksOfReconnects(t *testing.T) {
	nats := natstest.Start(t)
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	edit(t, path, fmt.Sprintf(`store_dir: "%s", listen: "127.0.0.1:0", max_store: 1GiB`, filepath.Join(filepath.Dir(path), "store")),
		fmt.Sprintf(`url: %q, max_store: 1GiB`, nats.URL))
	service := start(t, path)
	van := &traveller{t: t, nc: connect(t, nats.URL).Conn(), ts: time.Now()}
	checkLeaks(t, times(t, 6), func(int) {
		lost := connections(t, nats)
		for _, id := range lost {
			if err := nats.Nats().DisconnectClientByID(id); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all connections are back", func() bool {
			now := connections(t, nats)
			fresh := !slices.ContainsFunc(now, func(id uint64) bool { return slices.Contains(lost, id) })
			ready, _ := askReady(t, service.Admin)
			return len(now) == 3 && fresh && ready && heard(t, nats, "tripline.submit.>")
		})
		seen := len(hook.triggers())
		van.move("van-1")
		hook.await(t, "trigger after the reconnect", func(got []trigger) bool { return len(got) > seen })
	})
	// The readers of lost connections are the server's to remove, soon.
	eventually(t, "the server holds no readers of the past", func() bool { return readers(t, nats) <= 2*4 })
}

// readers counts the consumers of all streams.
func readers(t *testing.T, nats *natstest.Server) (n int) {
	t.Helper()
	state, err := nats.Nats().Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range state.AccountDetails {
		for _, stream := range account.Streams {
			n += len(stream.Consumer)
		}
	}
	return n
}

// heard says whether anybody subscribes to a subject: a renewed connection does
// so a moment after it is there.
func heard(t *testing.T, nats *natstest.Server, subject string) bool {
	t.Helper()
	list, err := nats.Nats().Connz(&server.ConnzOptions{Subscriptions: true})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Conns, func(c *server.ConnInfo) bool { return slices.Contains(c.Subs, subject) })
}

// connections are the ids of the service's on the server.
func connections(t *testing.T, nats *natstest.Server) (ids []uint64) {
	t.Helper()
	list, err := nats.Nats().Connz(&server.ConnzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Conns {
		if strings.HasPrefix(c.Name, "tripline/") {
			ids = append(ids, c.Cid)
		}
	}
	return ids
}

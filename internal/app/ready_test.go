package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/natstest"
)

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool
	Checks []struct {
		Name, Reason string
		OK           bool
	}
}

// awaitReadiness returns once /readyz says what is wanted of a check.
func awaitReadiness(t *testing.T, service running, check string, ok bool, reason string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		now := get[readiness](t, service.Admin+"/readyz")
		for _, c := range now.Checks {
			if c.Name == check && c.OK == ok && strings.Contains(c.Reason, reason) {
				if now.Ready && !ok {
					t.Errorf("ready, although %s is not", check)
				}
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("check %s is not %t with %q: %+v", check, ok, reason, now)
		}
		<-poll.C
	}
}

// A full queue that blocks makes the service not ready, with a reason; after
// the operator has made room it is ready again, and nothing is lost.
func TestReadinessFailsWhileAFullQueueBlocks(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	hook.answers(refuse(500))
	path := withoutDwell(t, hook.URL)
	edit(t, path, "breaker: {p99: 1s}", "breaker: {p99: 1s}\n    fallback: {max_bytes: 1MiB}")
	// The properties of a fence travel with each trigger: these make it large.
	edit(t, filepath.Join(filepath.Dir(path), "city.geojson"), `"tags":["depot"]`, `"tags":["depot"],"note":"`+strings.Repeat("x", 100_000)+`"`)
	service := start(t, path)
	awaitReadiness(t, service, "running", true, "")
	nc := connect(t, service.NATS).Conn()
	ts := time.Now()
	const moves = 120
	for i := range moves {
		ts = ts.Add(time.Millisecond)
		lat := 51.0
		if i%2 == 0 {
			lat = 52.5
		}
		if err := nc.Publish("location.van-1", location(lat, 4.5, ts)); err != nil {
			t.Fatal(err)
		}
	}
	awaitReadiness(t, service, "consumer hook", false, "its fallback queue is full")
	awaitReadiness(t, service, "store TRIPLINE_FALLBACK_hook", false, "% of 1 MiB used")
	hook.answers(nil)
	hook.await(t, "all triggers", func(got []trigger) bool {
		ids := map[string]bool{}
		for _, g := range got {
			ids[g.ID] = true
		}
		return len(ids) == moves
	})
	awaitReadiness(t, service, "consumer hook", true, "")
	awaitReadiness(t, service, "store TRIPLINE_FALLBACK_hook", true, "")
}

func TestReadinessFailsWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	hook := newHook(t)
	server := natstest.Start(t)
	path := withoutDwell(t, hook.URL)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := strings.Index(string(data), "nats:"), strings.Index(string(data), "ingest:")
	external := fmt.Sprintf("nats: {url: %q, max_store: 1GiB}\n", server.URL)
	if err := os.WriteFile(path, []byte(string(data[:from])+external+string(data[to:])), 0o600); err != nil {
		t.Fatal(err)
	}
	service := start(t, path)
	awaitReadiness(t, service, "nats", true, "")
	server.Stop()
	awaitReadiness(t, service, "nats", false, "not connected")
	server.Restart(t)
	awaitReadiness(t, service, "nats", true, "")
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestLive: the real-time run, shortened, ends by itself with a line for each
// policy. How they do there is up to the machine, so it is not judged.
func TestLive(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 8 s")
	}
	sc := base("short", time.Second)
	var out strings.Builder
	lines := 0
	if err := playLive(t.Context(), sc, 3*time.Second, &out, func(string) { lines++ }); err != nil {
		t.Fatal(err)
	}
	for _, name := range liveNames {
		if !strings.Contains(out.String(), "\n"+strings.Repeat(" ", len("tripline+hint")-len(name)+2)+name+" ") {
			t.Errorf("no line of %s in\n%s", name, out.String())
		}
	}
	if lines < 3 {
		t.Errorf("%d lines of progress", lines)
	}
}

// TestOutsider: real calls over HTTP to the model, while it is sick and after
// it has healed, deliver everything.
func TestOutsider(t *testing.T) {
	t.Parallel()
	sc := base("short", 500*time.Millisecond)
	began := time.Now()
	b, err := serveBackend(t.Context(), sc, began, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	o := newOutsider(sc, disciplines()[0], b.url+"/triggers", began, 1)
	go b.run(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.run(t.Context()) }()
	t.Cleanup(func() { <-ended; o.close() })
	for i := range 50 {
		o.take(t.Context(), &nats.Msg{Subject: fmt.Sprintf("recovery.eager.van-%d", i), Data: []byte("{}")})
	}
	for deadline := began.Add(30 * time.Second); ; {
		left := 0
		o.ask(t.Context(), func() {
			for i := range o.queues {
				left += len(o.queues[i])
			}
		})
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d triggers are left", left)
		}
		<-time.After(10 * time.Millisecond)
	}
	served, trips, parked := 0, 0, 0
	b.ask(t.Context(), func() { served = b.s.consumer.served })
	o.ask(t.Context(), func() { trips, parked = o.s.trips, o.s.outlet.parked })
	if served < 50 || trips < 1 || parked != 0 {
		t.Errorf("served %d, trips %d, parked %d; want at least 50, at least 1, 0", served, trips, parked)
	}
	resp, err := http.Get(b.url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("health: %d, %v", resp.StatusCode, err)
	}
}

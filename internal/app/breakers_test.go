package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/natstest"
)

const fleetConfig = `
nats: {url: "URL", max_store: 256MiB}
ingest: {partitions: 8}
fences: [{file: city.geojson}]
admin: {listen: "127.0.0.1:0"}
shutdown_grace: 0s
consumers:
  - name: hook
    match: {transitions: [enter, exit]}
    webhook: {url: "HOOK", timeout: 2s}
    breaker: {p99: 1s, base: 200ms, max: 6s, probes: 2, settle: 1s}
`

// states follows the breakers of several replicas.
type states struct {
	mu     sync.Mutex // guards what follows
	now    []breaker.State
	closed []time.Time // when each last closed
}

func (s *states) observe(i int) func(string, breaker.Transition) {
	return func(_ string, t breaker.Transition) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[i] = t.To
		if t.To == breaker.Closed {
			s.closed[i] = time.Now()
		}
	}
}

func (s *states) all(is func(breaker.State) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.now {
		if !is(state) {
			return false
		}
	}
	return true
}

func (s *states) await(t *testing.T, what string, is func(breaker.State) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !s.all(is) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// Three replicas have tripped over the same consumer: together they have no
// more probes in flight than one, and the first that closes spares the others
// their windows.
func TestTheBreakersOfAFleetProbeAsOne(t *testing.T) {
	long(t)
	if testing.Short() {
		t.Skip("takes some open windows")
	}
	t.Parallel()
	c := &cluster{t: t, hook: newHook(t)}
	url := natstest.Start(t).URL
	c.js = connect(t, url)
	seen := &states{now: make([]breaker.State, 3), closed: make([]time.Time, 3)}
	for i := range seen.now {
		path := write(t, strings.NewReplacer("URL", url, "HOOK", c.hook.URL).Replace(fleetConfig))
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "city.geojson"), []byte(square), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, path, func(o *app.Options) {
			o.Leases, o.Home = hurried, nowhere
			o.Observer.Breaker = seen.observe(i)
		})
	}
	c.drive()
	c.rounds(10)

	var inFlight, peak, calls atomic.Int64
	c.hook.answers(func(w http.ResponseWriter, r *http.Request) {
		now := inFlight.Add(1)
		defer inFlight.Add(-1)
		calls.Add(1)
		for {
			high := peak.Load()
			if now <= high || peak.CompareAndSwap(high, now) {
				break
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
		}
		http.Error(w, "sick", http.StatusInternalServerError)
	})
	seen.await(t, "all have tripped", func(s breaker.State) bool { return s != breaker.Closed })
	time.Sleep(300 * time.Millisecond) // what was in flight at the trips has ended
	peak.Store(0)
	calls.Store(0)
	time.Sleep(5 * time.Second)
	t.Logf("%d probes, at most %d in flight", calls.Load(), peak.Load())
	if peak.Load() > 2 || calls.Load() == 0 {
		t.Errorf("%d probes, %d in flight at once; want some, and at most 2", calls.Load(), peak.Load())
	}
	c.hook.answers(nil)
	seen.await(t, "all have closed", func(s breaker.State) bool { return s == breaker.Closed })
	seen.mu.Lock()
	first, last := seen.closed[0], seen.closed[0]
	for _, at := range seen.closed {
		if at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	seen.mu.Unlock()
	t.Logf("the last closed %v after the first", last.Sub(first))
	if apart := last.Sub(first); apart > 3*time.Second {
		t.Errorf("the last breaker closed %v after the first; a window is 6s", apart)
	}
	c.finish()
}

package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/lease"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

var errSick = errors.New("sick")

var hurried = lease.Timing{
	TTL: time.Second, Margin: 200 * time.Millisecond, Renew: 150 * time.Millisecond, Look: 30 * time.Millisecond,
	Request: 500 * time.Millisecond,
}

// service is several replicas that watch over who runs what.
type service struct {
	t  *testing.T
	js jetstream.JetStream

	mu      sync.Mutex
	running map[int]string // by partition
	overlap []int          // partitions that two ran at once
	changed chan struct{}
}

type replica struct {
	*lease.Keeper
	name string
	stop func() // in order
}

func newService(t *testing.T, js jetstream.JetStream) *service {
	return &service{t: t, js: js, running: map[int]string{}, changed: make(chan struct{}, 1)}
}

// join starts a replica that serves until it is told to end.
func (s *service) join(name string, js jetstream.JetStream) *replica {
	s.t.Helper()
	r := &replica{name: name}
	k, err := lease.Open(s.t.Context(), js, lease.Config{
		Namespace: "acme", Partitions: 8, Name: name, Timing: hurried,
		Home: func() lease.Home { return lease.Home{} },
		Serve: func(stay lease.Stay) error {
			s.begin(stay.Partition, name)
			defer s.end(stay.Partition, name)
			select {
			case <-stay.HandOver:
			case <-stay.Lost:
			}
			return nil
		},
		Hooks: lease.Hooks{Failed: func(err error) { s.t.Logf("%s: %v", name, err) }},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	r.Keeper = k
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("%s: Run: %v", name, err)
		}
	})
	s.t.Cleanup(r.stop)
	return r
}

func (s *service) begin(p int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[p] != "" {
		s.overlap = append(s.overlap, p)
	}
	s.running[p] = name
	s.tell()
}

func (s *service) end(p int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[p] == name {
		s.running[p] = ""
	}
	s.tell()
}

func (s *service) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// counts says how many partitions each runs.
func (s *service) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, name := range s.running {
		if name != "" {
			n[name]++
		}
	}
	return n
}

func (s *service) await(what string, until func(map[string]int) bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	deadline := time.After(patience)
	for {
		n := s.counts()
		if until(n) {
			return time.Since(began)
		}
		select {
		case <-s.changed:
		case <-deadline:
			s.t.Fatalf("not within %v: %s; now %v", patience, what, n)
		}
	}
}

func (s *service) sound() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.overlap) > 0 {
		s.t.Errorf("two replicas ran the same partition at once: %v", s.overlap)
	}
}

// evenly says that the named ones run everything, about the same each.
func evenly(names ...string) func(map[string]int) bool {
	return func(n map[string]int) bool {
		sum := 0
		for name, count := range n {
			if !slices.Contains(names, name) || count < 8/len(names) || count > (7+len(names))/len(names) {
				return false
			}
			sum += count
		}
		return sum == 8 && len(n) == len(names)
	}
}

func TestReplicasShareThePartitions(t *testing.T) {
	s := newService(t, natstest.Start(t).JetStream(t))
	a := s.join("a", s.js)
	s.await("a runs all", evenly("a"))
	b := s.join("b", s.js)
	s.await("a and b share", evenly("a", "b"))
	s.join("c", s.js)
	s.await("a, b and c share", evenly("a", "b", "c"))
	a.stop()
	if took := s.await("b and c share", evenly("b", "c")); took > hurried.TTL {
		t.Errorf("after a left in order it took %v, as if it had died", took)
	}
	b.stop()
	s.await("c runs all", evenly("c"))
	s.sound()
}

// The connection of one replica stands still for longer than its leases last:
// the others take over when these have ended, and it has stopped before.
func TestAReplicaThatIsCutOffStopsBeforeOthersTakeOver(t *testing.T) {
	srv := natstest.Start(t)
	s := newService(t, srv.JetStream(t))
	relay := sinktest.NewRelay(t, strings.TrimPrefix(srv.URL, "nats://"))
	nc, err := nats.Connect("nats://"+relay.Addr, nats.MaxReconnects(-1), nats.IgnoreDiscoveredServers())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	a := s.join("a", js)
	s.await("a runs all", evenly("a"))
	s.join("b", s.js)
	s.await("a and b share", evenly("a", "b"))
	relay.Hold()
	s.await("a has stopped", func(n map[string]int) bool { return n["a"] == 0 })
	if a.Valid() || a.Holds(0) {
		t.Error("a believes in its leases")
	}
	s.await("b runs all", evenly("b"))
	relay.Release()
	s.await("a and b share again", evenly("a", "b"))
	s.sound()
}

// The server is away for longer than the leases last: everybody stops, and
// afterwards everybody goes on.
func TestTheServerIsAway(t *testing.T) {
	srv := natstest.Start(t)
	s := newService(t, srv.JetStream(t))
	s.join("a", s.js)
	s.join("b", srv.JetStream(t))
	s.await("a and b share", evenly("a", "b"))
	srv.Stop()
	s.await("all have stopped", func(n map[string]int) bool { return len(n) == 0 })
	srv.Restart(t)
	s.await("a and b share again", evenly("a", "b"))
	s.sound()
}

// Serve fails: it is tried again after a pause, and nothing else is disturbed.
func TestServeThatEndsByItselfIsStartedAgain(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	starts, told := make(chan int, 100), make(chan error, 100)
	k, err := lease.Open(t.Context(), js, lease.Config{
		Namespace: "acme", Partitions: 1, Timing: hurried,
		Serve: func(stay lease.Stay) error { starts <- stay.Partition; return errSick },
		Hooks: lease.Hooks{Ended: func(_ int, err error) { told <- err }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	for range 2 {
		<-starts
		if err := <-told; !errors.Is(err, errSick) {
			t.Errorf("told %v", err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Whoever starts alone is told once of all that it gains: a log has one line
// of it, not one for each.
func TestWhatIsGainedAtOnceIsToldAtOnce(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	gained := make(chan []int, 100)
	k, err := lease.Open(t.Context(), js, lease.Config{
		Namespace: "acme", Partitions: 8, Timing: hurried,
		Serve: func(stay lease.Stay) error {
			select {
			case <-stay.HandOver:
			case <-stay.Lost:
			}
			return nil
		},
		Hooks: lease.Hooks{Gained: func(p []int) { gained <- p }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	if got := <-gained; !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("told of %v", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOnlyOneHasTheTurn(t *testing.T) {
	s := newService(t, natstest.Start(t).JetStream(t))
	a, b := s.join("a", s.js), s.join("b", s.js)
	s.await("a and b share", evenly("a", "b"))
	take := func(r *replica, want bool) {
		t.Helper()
		if got, err := r.Take(t.Context(), "dispatch"); err != nil || got != want {
			t.Fatalf("%s takes the turn: %t, %v; want %t", r.name, got, err, want)
		}
	}
	take(a, true)
	take(a, true)
	take(b, false)
	if err := b.Release(t.Context(), "dispatch"); err != nil {
		t.Error(err)
	}
	take(b, false) // it was not b's to give back
	if err := a.Release(t.Context(), "dispatch"); err != nil {
		t.Error(err)
	}
	take(b, true)
	take(a, false)
	b.stop()
	take(a, true) // b is gone, and its turn with it
}

func TestAnotherNumberOfPartitionsIsRefused(t *testing.T) {
	s := newService(t, natstest.Start(t).JetStream(t))
	s.join("a", s.js)
	s.await("a runs all", evenly("a"))
	failed := make(chan error, 100)
	k, err := lease.Open(t.Context(), s.js, lease.Config{
		Namespace: "acme", Partitions: 4, Timing: hurried,
		Serve: func(lease.Stay) error { t.Error("it runs something"); return nil },
		Hooks: lease.Hooks{Failed: func(err error) { failed <- err }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	if err := <-failed; !strings.Contains(err.Error(), "ingest.partitions") {
		t.Errorf("told %v", err)
	}
	cancel()
	<-done
}

func TestATTLTooShortForItsRenewalsIsRefused(t *testing.T) {
	_, err := lease.Open(t.Context(), nil, lease.Config{Timing: lease.Timing{TTL: 5 * time.Second}})
	if err == nil {
		t.Error("5s leases that are renewed every 2s, with a margin of 2s, are taken")
	}
}

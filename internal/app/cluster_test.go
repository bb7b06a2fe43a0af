package app_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/lease"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/internal/state"
	"github.com/tripline/tripline/router/sinktest"
)

// hurried are short leases. That a process has ended on this machine is not
// looked at: as if each ran on a machine of its own.
var hurried = lease.Timing{
	TTL: 5 * time.Second, Margin: 500 * time.Millisecond, Renew: 400 * time.Millisecond, Look: 200 * time.Millisecond,
}

func nowhere() lease.Home { return lease.Home{} }

const clusterPartitions = 8

// cluster is three NATS servers, routers over them, and one consumer.
type cluster struct {
	*natstest.Cluster
	t     *testing.T
	js    jetstream.JetStream
	hook  *hook
	fleet *fleet
}

// wholeCluster, if set, runs every story of a cluster; without it there is one.
const wholeCluster = "TRIPLINE_CLUSTER"

// long skips a test that takes elections and leases to run out, unless it is
// asked for: CI does.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv(wholeCluster) == "" {
		t.Skipf("takes half a minute of waiting: set %s=1", wholeCluster)
	}
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster takes seconds")
	}
	t.Parallel() // they wait more than they work
	c := &cluster{Cluster: natstest.StartCluster(t, 3), t: t, hook: newHook(t)}
	c.js = connect(t, c.URL)
	return c
}

const clusterConfig = `
nats: {url: "URL", max_store: 256MiB, replicas: 3}
ingest: {partitions: 8}
fences: [{file: city.geojson}]
admin: {listen: "127.0.0.1:0"}
shutdown_grace: 1s
consumers:
  - name: hook
    match: {transitions: [enter, exit]}
    webhook: {url: "HOOK", timeout: 2s}
    breaker: {p99: 1s, base: 200ms, max: 1s}
`

// router starts a replica as a process of its own.
func (c *cluster) router(urls string) *child {
	c.t.Helper()
	path := write(c.t, strings.NewReplacer("URL", urls, "HOOK", c.hook.URL).Replace(clusterConfig))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "city.geojson"), []byte(square), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return startChild(c.t, path, childHurry+"=1")
}

type replicas struct {
	Self       string
	Valid      bool
	Replicas   []struct{ ID, Name string }
	Partitions []string
	Here       []int
}

func (c *child) replicas(t *testing.T) replicas { return get[replicas](t, c.admin+"/api/v1/replicas") }

// share waits until these routers, and no others, run all partitions.
func (c *cluster) share(routers ...*child) time.Duration {
	c.t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		sum, fair := 0, true
		for _, r := range routers {
			n := len(r.replicas(c.t).Here)
			sum += n
			fair = fair && n >= clusterPartitions/len(routers)
		}
		if fair && sum == clusterPartitions {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			for _, r := range routers {
				c.t.Logf("%s: %+v", r.admin, r.replicas(c.t))
			}
			c.t.Fatalf("the partitions were not shared within %v", patience)
		}
		<-tick.C
	}
}

// fleet is devices that go in and out of the square, each fix one trigger.
type fleet struct {
	mu     sync.Mutex // guards what follows
	rounds int
	stop   context.CancelFunc
	done   chan struct{}
}

const fleetDevices = 40

// drive begins to publish, and goes on until finish.
func (c *cluster) drive() {
	ctx, cancel := context.WithCancel(c.t.Context())
	f := &fleet{stop: cancel, done: make(chan struct{})}
	c.fleet = f
	c.t.Cleanup(func() { cancel(); <-f.done })
	go func() {
		defer close(f.done)
		start := time.Now().Add(-time.Hour)
		for round := 0; ctx.Err() == nil; round++ {
			lat := 52.5 // inside
			if round%2 == 1 {
				lat = 51
			}
			body := location(lat, 4.5, start.Add(time.Duration(round)*time.Second))
			var group sync.WaitGroup
			for d := range fleetDevices {
				group.Go(func() { c.publish(fmt.Sprintf("location.van-%d", d), round, body) })
			}
			group.Wait()
			f.mu.Lock()
			f.rounds++
			f.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
}

// publish stores a location, however often that takes.
func (c *cluster) publish(subject string, round int, body []byte) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: body},
			jetstream.WithMsgID(fmt.Sprint(subject, " ", round)), jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil || c.js.Conn().IsClosed() {
			return
		}
	}
}

// rounds waits until so many more rounds are published.
func (c *cluster) rounds(n int) {
	c.t.Helper()
	c.fleet.mu.Lock()
	until := c.fleet.rounds + n
	c.fleet.mu.Unlock()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c.fleet.mu.Lock()
		now := c.fleet.rounds
		c.fleet.mu.Unlock()
		if now >= until {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("only %d rounds published, not %d", now, until)
		}
	}
}

// finish ends the fleet, and holds what the consumer got against what it was
// to get: each device's enters and exits, all of them, in order. Repeats with
// the id that they had before are allowed.
func (c *cluster) finish() {
	c.t.Helper()
	c.fleet.stop()
	<-c.fleet.done
	rounds := c.fleet.rounds
	c.hook.await(c.t, fmt.Sprintf("complete delivery of %d rounds", rounds), func(got []trigger) bool {
		return len(first(got)) >= rounds*fleetDevices
	})
	got := c.hook.triggers()
	by := map[string][]trigger{}
	for _, tr := range first(got) {
		by[tr.Subject] = append(by[tr.Subject], tr)
	}
	c.t.Logf("%d rounds, %d deliveries, %d of them repeats", rounds, len(got), len(got)-rounds*fleetDevices)
	for device, list := range by {
		if len(list) != rounds {
			c.t.Errorf("%s: %d triggers, want %d", device, len(list), rounds)
			continue
		}
		for i, tr := range list {
			want := "dev.tripline.enter.v1"
			if i%2 == 1 {
				want = "dev.tripline.exit.v1"
			}
			if tr.Type != want || i > 0 && tr.Sequence <= list[i-1].Sequence {
				c.t.Errorf("%s: trigger %d is %s with sequence %s, after %s", device, i, tr.Type, tr.Sequence, list[max(i-1, 0)].Sequence)
				break
			}
		}
	}
	if len(by) != fleetDevices {
		c.t.Errorf("%d devices, want %d", len(by), fleetDevices)
	}
}

// first drops what came before with the same id.
func first(got []trigger) []trigger {
	seen := map[string]bool{}
	var out []trigger
	for _, tr := range got {
		if !seen[tr.ID] {
			seen[tr.ID] = true
			out = append(out, tr)
		}
	}
	return out
}

// ready waits until the routers are.
func (c *cluster) ready(routers ...*child) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for _, r := range routers {
		for !get[struct{ Ready bool }](c.t, r.admin+"/readyz").Ready {
			if time.Now().After(deadline) {
				c.t.Fatalf("%s is not ready: %s", r.admin, text(c.t, r.admin+"/readyz"))
			}
		}
	}
}

func (c *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end stops a router in order and waits for it.
func (c *child) end(t *testing.T) {
	t.Helper()
	c.signal(t, syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the router ended with %v", err)
	}
}

func TestAKilledReplicasPartitionsMove(t *testing.T) {
	c := startCluster(t)
	a := c.router(c.URL)
	b, d := c.router(c.URL), c.router(c.URL)
	c.share(a, b, d)
	c.drive()
	c.rounds(5)
	// The consumer is away meanwhile: what is parked goes with the partitions.
	c.hook.answers(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusInternalServerError) })
	c.rounds(5)
	a.kill()
	took := c.share(b, d)
	t.Logf("its partitions moved within %v", took)
	if limit := hurried.TTL + 2*time.Second; took > limit {
		t.Errorf("its partitions moved after %v, want %v", took, limit)
	}
	c.rounds(5)
	c.hook.answers(nil)
	c.rounds(5)
	c.finish()
	c.ready(b, d)
}

// A process that stands still beyond its leases and goes on finds them gone:
// it delivers nothing of what it still has, and joins anew.
func TestAReplicaThatStoodStillIsHarmless(t *testing.T) {
	long(t)
	c := startCluster(t)
	a := c.router(c.URL)
	b, d := c.router(c.URL), c.router(c.URL)
	c.share(a, b, d)
	c.drive()
	c.rounds(10)
	before := a.replicas(t).Self
	a.signal(t, syscall.SIGSTOP)
	c.share(b, d)
	c.rounds(5)
	a.signal(t, syscall.SIGCONT)
	c.share(a, b, d)
	if now := a.replicas(t).Self; now == before {
		t.Errorf("it has its old id %s", now)
	}
	c.rounds(5)
	c.finish()
	c.ready(a, b, d)
}

// One replica is cut off from the servers for longer than its leases last, and
// comes back.
func TestAReplicaThatIsCutOffIsHarmless(t *testing.T) {
	long(t)
	c := startCluster(t)
	relay := sinktest.NewRelay(t, c.Members[0].Client)
	a := c.router("nats://" + relay.Addr)
	b, d := c.router(c.URL), c.router(c.URL)
	c.share(a, b, d)
	c.drive()
	c.rounds(10)
	relay.Hold()
	took := c.share(b, d)
	if limit := hurried.TTL + 2*time.Second; took > limit {
		t.Errorf("its partitions moved after %v, want %v", took, limit)
	}
	if r := a.replicas(t); r.Valid || len(r.Here) > 0 {
		t.Errorf("it believes that it has %v, valid: %t", r.Here, r.Valid)
	}
	c.rounds(5)
	relay.Release()
	c.share(a, b, d)
	c.rounds(5)
	c.finish()
	c.ready(a, b, d)
}

// The server that leads the locations, the state and the leases ends without
// a word; an election takes longer than the leases of this test last.
func TestTheStreamsLeaderEnds(t *testing.T) {
	long(t)
	c := startCluster(t)
	a := c.router(c.URL)
	b, d := c.router(c.URL), c.router(c.URL)
	c.share(a, b, d)
	c.drive()
	c.rounds(10)
	leader := c.Leader(t, c.js, "TRIPLINE_LOCATIONS")
	leader.Kill()
	c.rounds(10)
	leader.Start(t)
	c.share(a, b, d)
	c.rounds(5)
	c.finish()
	c.ready(a, b, d)
}

// Everything is restarted, one after the other: servers and routers.
func TestRollingRestart(t *testing.T) {
	long(t)
	c := startCluster(t)
	routers := []*child{c.router(c.URL), c.router(c.URL), c.router(c.URL)}
	c.share(routers...)
	c.drive()
	c.rounds(5)
	for i := range routers {
		routers[i].end(t)
		routers[i] = c.router(c.URL)
		c.share(routers...)
		c.rounds(3)
	}
	for _, s := range c.Members {
		s.Stop()
		s.Start(t)
		c.rounds(5)
		c.share(routers...)
	}
	c.finish()
	c.ready(routers...)
}

// Somebody else claims a partition that is leased to us: it stops at once, and
// as the lease is ours, it is claimed again and goes on.
func TestAPartitionThatIsFencedStartsAgain(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, hook: newHook(t)}
	url := natstest.Start(t).URL
	c.js = connect(t, url)
	path := write(t, strings.NewReplacer("URL", url, "HOOK", c.hook.URL).Replace(fleetConfig))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "city.geojson"), []byte(square), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, path, func(o *app.Options) { o.Leases, o.Home = hurried, nowhere })
	c.drive()
	c.rounds(3)
	intruder, err := state.Open(t.Context(), c.js, state.Config{Namespace: "tripline", Partitions: clusterPartitions, MaxBytes: 256 << 20 / 20})
	if err != nil {
		t.Fatal(err)
	}
	for p := range clusterPartitions {
		if _, err := intruder.Claim(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	c.rounds(3)
	c.finish()
}

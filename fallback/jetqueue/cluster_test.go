package jetqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/natstest"
)

// clusterPatience is for elections, which take up to 9 s each.
const clusterPatience = 60 * time.Second

// startCluster runs three servers, by name.
func startCluster(t *testing.T) (map[string]*natstest.Server, *nats.Conn) {
	t.Helper()
	ports := make([]int, 3)
	routes := make([]string, 3)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		routes[i] = fmt.Sprintf("nats://127.0.0.1:%d", ports[i])
		_ = l.Close()
	}
	servers := map[string]*natstest.Server{}
	var urls []string
	for i, port := range ports {
		name := fmt.Sprint("n", i)
		servers[name] = natstest.Start(t, func(o *server.Options) {
			o.ServerName = name
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
			o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		})
		urls = append(urls, servers[name].URL)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return servers, nc
}

// On three replicas the stream's leader dies in the middle of a divert, and
// comes back in the middle of the replay: every trigger is there, once and in
// order, and an empty answer is never taken for an empty slot.
func TestReplicatedQueueOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	servers, nc := startCluster(t)
	js, _ := jetstream.New(nc)
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	var q *jetqueue.Queue
	for q == nil {
		var err error
		q, err = jetqueue.Open(ctx, nc, jetqueue.Config{
			Consumer: "dispatch", MaxBytes: 64 << 20, DeadMaxBytes: 1 << 20, Replicas: 3, Timeout: 2 * time.Second,
		})
		if err != nil && ctx.Err() != nil {
			t.Fatalf("the cluster doesn't form: %v", err)
		}
	}
	t.Cleanup(func() { _ = q.Close() })

	const slots, each = 12, 40
	var parked atomic.Int64
	var wg sync.WaitGroup
	for s := range slots {
		wg.Go(func() {
			for n := range each {
				tr := trigger("a", n)
				tr.ID, tr.Slot = fmt.Sprintf("s%d-%d", s, n), s
				for ctx.Err() == nil {
					a := await(t, park(q, tr, fallback.ReasonOpen))
					if a.err == nil || errors.Is(a.err, fallback.ErrDuplicate) {
						parked.Add(1)
						break
					}
				}
			}
		})
	}
	waitCluster(t, ctx, "half is parked", func() bool { return parked.Load() > slots*each/2 })
	dead := leader(t, ctx, js)
	servers[dead].Stop()
	wg.Wait()
	if n := parked.Load(); n != slots*each {
		t.Fatalf("%d of %d parked", n, slots*each)
	}

	for s := range slots {
		wg.Go(func() {
			slot := fallback.Slot{Partition: 3, Index: s}
			for n, after := 0, uint64(0); n < each; {
				it, ok, err := q.Head(ctx, slot, after)
				switch {
				case ctx.Err() != nil:
					t.Errorf("slot %d: %d of %d read", s, n, each)
					return
				case err != nil:
					continue // not known: ask again
				case !ok:
					t.Errorf("slot %d is called empty after %d of %d", s, n, each)
					return
				}
				if want := fmt.Sprintf("s%d-%d", s, n); it.Trigger.ID != want {
					t.Errorf("slot %d: %s, want %s", s, it.Trigger.ID, want)
					return
				}
				for q.Delete(ctx, it.Seq) != nil && ctx.Err() == nil {
				}
				n, after = n+1, it.Seq
			}
		})
	}
	servers[dead].Restart(t)
	wg.Wait()
	waitCluster(t, ctx, "the queue is empty", func() bool {
		_, ok, err := q.Oldest(ctx)
		return err == nil && !ok
	})
}

// leader is the name of the fallback stream's leader.
func leader(t *testing.T, ctx context.Context, js jetstream.JetStream) (name string) {
	t.Helper()
	waitCluster(t, ctx, "the stream has a leader", func() bool {
		s, err := js.Stream(ctx, "TRIPLINE_FALLBACK_dispatch")
		if err == nil && s.CachedInfo().Cluster != nil {
			name = s.CachedInfo().Cluster.Leader
		}
		return name != ""
	})
	return name
}

func waitCluster(t *testing.T, ctx context.Context, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", clusterPatience, what)
		case <-tick.C:
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// standsStill is how long a replica stands still at most, when that is to be
// longer than its leases last.
const standsStill = 20 * time.Second

const memberConfig = `
listen: %q
server_name: n%d
jetstream { store_dir: %q, max_file_store: 4GB }
cluster { name: chaos, listen: %q, routes: [%s] }
`

// clustered says that the servers, or the routers, are several.
func (o *options) clustered() bool { return o.Replicas > 1 || o.NATS > 1 }

// openMembers starts the servers of a cluster, and says where they are.
func (r *run) openMembers(ctx context.Context) (addresses, config string, err error) {
	r.say("building the NATS server")
	binary := filepath.Join(r.dir, "nats-server")
	if err := build(ctx, "github.com/nats-io/nats-server/v2", binary, false); err != nil {
		return "", "", err
	}
	clients, routes := make([]string, r.NATS), make([]string, r.NATS)
	for i := range r.NATS {
		if clients[i], err = freeAddress(); err != nil {
			return "", "", err
		}
		if routes[i], err = freeAddress(); err != nil {
			return "", "", err
		}
	}
	for i := range r.NATS {
		text := fmt.Sprintf(memberConfig, clients[i], i, filepath.Join(r.dir, fmt.Sprint("jetstream-", i)), routes[i],
			`"nats://`+strings.Join(routes, `", "nats://`)+`"`)
		if r.NATS == 1 {
			text = text[:strings.Index(text, "cluster {")]
		}
		file := filepath.Join(r.dir, fmt.Sprintf("nats-%d.conf", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", "", fmt.Errorf("writing a server's configuration: %w", err)
		}
		p, err := newProcess(fmt.Sprint("NATS server n", i), filepath.Join(r.dir, fmt.Sprintf("nats-%d.log", i)), binary, "-c", file)
		if err != nil {
			return "", "", err
		}
		r.members = append(r.members, p)
		if err := p.start(); err != nil {
			return "", "", err
		}
	}
	replicas := 1
	if r.NATS >= 3 {
		replicas = 3
	}
	list := strings.Join(clients, ",nats://")
	return list, fmt.Sprintf("{url: %q, max_store: 2GiB, replicas: %d}", "nats://"+list, replicas), nil
}

// openRouters makes as many routers as are wanted; all say with one voice
// when one ends by itself.
func (r *run) openRouters(binary, natsConfig string) error {
	for i := range max(r.Replicas, 1) {
		dir := r.dir
		if r.Replicas > 1 {
			dir = filepath.Join(r.dir, fmt.Sprint("replica-", i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return fmt.Errorf("making a replica's folder: %w", err)
			}
		}
		t, err := newTripline(dir, binary, natsConfig, r.consumers)
		if err != nil {
			return err
		}
		t.name = fmt.Sprint("router ", i)
		if r.External || r.clustered() {
			// With a server that is away it may find that it can't start.
			t.forgiven = func() bool { return !t.up.Load() }
		}
		t.started = func() {
			switch {
			case r.Replicas > 1:
				r.again.Store(math.MaxUint64) // one takes over from another at any time
			case r.fleet != nil:
				r.again.Store(r.fleet.last())
			}
		}
		if i > 0 {
			t.failed = r.routers[0].failed
		}
		r.routers = append(r.routers, t)
	}
	r.router = r.routers[0]
	for _, t := range r.routers {
		if err := t.start(); err != nil {
			return err
		}
	}
	return nil
}

// pick chooses the router that something happens to next.
func (r *run) pick() { r.router = r.routers[r.rng.IntN(len(r.routers))] }

// allReady returns when every router is ready.
func (r *run) allReady(ctx context.Context) error {
	for _, t := range r.routers {
		if err := t.awaitReady(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// metric is the sum of a metric over all routers.
func (r *run) metric(ctx context.Context, name string, without ...string) (sum float64, err error) {
	for _, t := range r.routers {
		v, err := t.metric(ctx, name, without...)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// stopAll stops the routers in order, one after the other.
func (r *run) stopAll() error {
	var errs []error
	for _, t := range r.routers {
		errs = append(errs, t.stop(stopWithin))
	}
	return errors.Join(errs...)
}

// tormentMembers kills and stops servers of the cluster, one at a time, until
// calm ends.
func (r *run) tormentMembers(calm, running context.Context) error {
	rng := rand.New(rand.NewPCG(r.Seed, 1))
	for calm.Err() == nil {
		if err := r.waitMember(running, 2*time.Second+time.Duration(rng.Int64N(int64(10*time.Second)))); err != nil {
			return err
		}
		m := r.members[rng.IntN(len(r.members))]
		signal, how := syscall.SIGKILL, "killed"
		if rng.IntN(3) == 0 {
			signal, how = syscall.SIGTERM, "stopped in order"
		}
		away := time.Duration(rng.Int64N(int64(6 * time.Second)))
		r.faults++
		r.say("fault: %s is %s, and started again after %d ms", m.name, how, away.Milliseconds())
		if err := m.signal(signal, stopWithin); err != nil {
			return err
		}
		if err := r.waitMember(running, away); err != nil {
			return err
		}
		if err := m.start(); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) waitMember(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

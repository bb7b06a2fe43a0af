package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// server is a NATS server in a process of its own, which the router reaches
// through a proxy, and the fleet directly.
type server struct {
	*process
	proxy  *proxy
	faults int
}

const serverConfig = `
listen: %q
server_name: chaos
jetstream { store_dir: %q, max_file_store: 4GB }
`

// openServer builds and starts the server.
func (r *run) openServer(ctx context.Context) (address, config string, err error) {
	r.say("building the NATS server")
	binary := filepath.Join(r.dir, "nats-server")
	if err := build(ctx, "github.com/nats-io/nats-server/v2", binary, false); err != nil {
		return "", "", err
	}
	if address, err = freeAddress(); err != nil {
		return "", "", err
	}
	file := filepath.Join(r.dir, "nats.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, serverConfig, address, filepath.Join(r.dir, "jetstream")), 0o600); err != nil {
		return "", "", fmt.Errorf("writing the server's configuration: %w", err)
	}
	p, err := newProcess("the NATS server", filepath.Join(r.dir, "nats.log"), binary, "-c", file)
	if err != nil {
		return "", "", err
	}
	r.server = &server{process: p}
	if err := p.start(); err != nil {
		return "", "", err
	}
	if r.server.proxy, err = newProxy(address); err != nil {
		return "", "", err
	}
	return address, fmt.Sprintf("{url: %q, max_store: 2GiB}", "nats://"+r.server.proxy.address()), nil
}

func (r *run) closeServer() {
	if r.server == nil {
		return
	}
	if r.server.proxy != nil {
		r.server.proxy.close()
	}
	r.server.close()
}

// torment makes the faults of a network and of a server, until calm ends.
func (r *run) torment(calm, running context.Context) error {
	s, rng := r.server, rand.New(rand.NewPCG(r.Seed, 1))
	for calm.Err() == nil {
		if err := r.hold(running, time.Duration(rng.Int64N(int64(4*time.Second)))); err != nil {
			return err
		}
		s.faults++
		lasts := 200*time.Millisecond + time.Duration(rng.Int64N(int64(3*time.Second)))
		if err := r.fault(running, rng, lasts); err != nil {
			return err
		}
	}
	return nil
}

// fault makes one fault and ends it.
func (r *run) fault(ctx context.Context, rng *rand.Rand, lasts time.Duration) (err error) {
	s := r.server
	switch rng.IntN(6) {
	case 0:
		r.say("fault: %d connections are cut", s.proxy.cut(func() bool { return true }))
	case 1:
		r.say("fault: %d connections are cut, others are not", s.proxy.cut(func() bool { return rng.IntN(2) == 0 }))
	case 2:
		d := time.Duration(5+rng.IntN(200)) * time.Millisecond
		r.say("fault: everything takes %v longer for %d ms", d, lasts.Milliseconds())
		s.proxy.delay(d)
		err = r.hold(ctx, lasts)
		s.proxy.delay(0)
	case 3:
		err = r.blackOut(ctx, lasts)
	case 4:
		r.say("fault: the NATS server is stopped in order and started again")
		if err := s.signal(syscall.SIGTERM, stopWithin); err != nil {
			return err
		}
		if err := r.hold(ctx, lasts/4); err != nil {
			return err
		}
		return s.start()
	case 5:
		r.say("fault: the NATS server is killed and started again")
		s.kill()
		if err := r.hold(ctx, lasts/4); err != nil {
			return err
		}
		return s.start()
	}
	return err
}

// blackOut makes all connections half-open.
func (r *run) blackOut(ctx context.Context, lasts time.Duration) error {
	r.say("fault: all connections are half-open; new ones lead nowhere for %d ms", lasts.Milliseconds())
	r.server.proxy.darken(true)
	err := r.hold(ctx, lasts)
	r.server.proxy.darken(false)
	return err
}

// hold waits, unless ctx or the server ends.
func (r *run) hold(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-r.server.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package sinktest

import (
	"net"
	"sync"
	"testing"
)

// Relay passes a TCP connection on and can hold it: then both ends stay
// connected, and nothing gets through, as with a server that hangs.
type Relay struct {
	// Addr is where it listens: host and port.
	Addr string

	target string
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	open  chan struct{}
	held  bool
	conns map[net.Conn]bool
}

// NewRelay listens on a loopback port for as long as the test runs, and passes
// what comes on to target, a host and port.
func NewRelay(t testing.TB, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Addr: l.Addr().String(), target: target, listen: l, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(r.open)
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.Cut()
		r.Release()
		r.wg.Wait()
	})
	return r
}

// Hold stops everything that is on its way.
func (r *Relay) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held {
		r.held, r.open = true, make(chan struct{})
	}
}

// Release lets everything go on.
func (r *Relay) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.held = false
		close(r.open)
	}
}

// Cut ends the connections. New ones are taken.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

func (r *Relay) accept() {
	for {
		in, err := r.listen.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.conns[in], r.conns[out] = true, true
		r.mu.Unlock()
		r.wg.Go(func() { r.pass(in, out) })
		r.wg.Go(func() { r.pass(out, in) })
	}
}

// pass copies until either side ends, then ends both.
func (r *Relay) pass(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		r.mu.Lock()
		delete(r.conns, from)
		r.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			r.mu.Lock()
			open := r.open
			r.mu.Unlock()
			<-open
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

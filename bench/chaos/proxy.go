package main

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// proxy passes TCP connections on to a server, and makes the faults of a
// network.
type proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu      sync.Mutex // guards all below
	links   map[*passage]struct{}
	latency time.Duration
	dark    bool // nothing passes, and nobody is told
	closed  bool
}

// passage is one connection through the proxy.
type passage struct {
	client, server net.Conn // server is nil in one that leads nowhere
	// dead: what it should have carried was dropped, so it can never carry
	// anything again. Guarded by the proxy's mu.
	dead bool
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the proxy: %w", err)
	}
	p := &proxy{listener: l, target: target, links: map[*passage]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.cut(func() bool { return true })
	p.wg.Wait()
}

// cut breaks off the connections that pick chooses, and returns how many.
func (p *proxy) cut(pick func() bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if pick() {
			l.close()
			delete(p.links, l)
			n++
		}
	}
	return n
}

// delay makes everything take longer by d, either way.
func (p *proxy) delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// darken makes all connections half-open: each side believes that the other is
// there, and nothing arrives. New ones are accepted and lead nowhere. When the
// light is back, the connections of the dark stay as they are, until somebody
// gives them up.
func (p *proxy) darken(dark bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dark = dark
	if dark {
		for l := range p.links {
			l.dead = true
		}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.pass(client) })
	}
}

// pass carries one connection.
func (p *proxy) pass(client net.Conn) {
	l := &passage{client: client}
	p.mu.Lock()
	l.dead = p.dark
	p.mu.Unlock()
	if !l.dead {
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close() // refused, as by the server itself
			return
		}
		l.server = server
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.close()
		return
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() { p.pump(l, l.client, l.server) })
	if l.server != nil {
		both.Go(func() { p.pump(l, l.server, l.client) })
	}
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	l.close()
}

// chunk is some bytes on their way.
type chunk struct {
	data []byte
	due  time.Time
}

// pump carries bytes one way until either side ends.
func (p *proxy) pump(l *passage, from, to net.Conn) {
	line := make(chan chunk, 256)
	var writer sync.WaitGroup
	writer.Go(func() {
		for c := range line {
			if wait := time.Until(c.due); wait > 0 {
				time.Sleep(wait)
			}
			if !p.carries(l) {
				continue
			}
			if _, err := to.Write(c.data); err != nil {
				l.close()
			}
		}
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.carries(l) {
			p.mu.Lock()
			due := time.Now().Add(p.latency)
			p.mu.Unlock()
			line <- chunk{append([]byte(nil), buf[:n]...), due}
		}
		if err != nil {
			break
		}
	}
	close(line)
	writer.Wait()
	if p.carries(l) {
		l.close()
	}
}

// carries says whether the passage leads anywhere. One that once did not never
// does again.
func (p *proxy) carries(l *passage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !l.dead && l.server != nil
}

// close breaks both sides off.
func (l *passage) close() {
	l.client.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// Package natstest runs a real nats-server with JetStream inside a test
// process, so that what talks to NATS is tested against NATS.
package natstest

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// readyWithin bounds the start of a server; the machine may be busy.
const readyWithin = 20 * time.Second

// Server is an embedded nats-server on a loopback port, with its store in a
// directory that the test removes. It stops when the test ends.
type Server struct {
	// URL is where clients connect; it stays the same over a Restart.
	URL string

	mu   sync.Mutex // guards opts and srv
	opts *server.Options
	srv  *server.Server // nil while stopped
}

// Option changes the options that a server is started with.
type Option func(*server.Options)

// Start runs a server with JetStream on a free loopback port.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := &server.Options{
		ServerName:             "natstest",
		Host:                   "127.0.0.1",
		Port:                   server.RANDOM_PORT,
		JetStream:              true,
		StoreDir:               filepath.Join(t.TempDir(), "store"),
		JetStreamMaxStore:      8 << 30,
		JetStreamMaxMemory:     1 << 30,
		DisableJetStreamBanner: true,
		NoLog:                  true,
		NoSigs:                 true,
	}
	for _, opt := range opts {
		opt(o)
	}
	s := &Server{opts: o}
	t.Cleanup(s.Stop)
	s.start(t)
	return s
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	// The server fills in defaults, so each start gets its own copy.
	srv, err := server.NewServer(s.opts.Clone())
	if err != nil {
		t.Fatalf("nats-server options: %v", err)
	}
	s.srv = srv
	srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		t.Fatalf("nats-server not ready within %v", readyWithin)
	}
	s.URL = srv.ClientURL()
	if addr, ok := srv.Addr().(*net.TCPAddr); ok {
		s.opts.Port = addr.Port
	}
}

// Stop shuts the server down and waits until it has. Its store stays, for
// Restart. Stopping twice does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}

// Restart stops the server, if it runs, and starts it again on the same port
// and the same store, with its options changed by opts.
func (s *Server) Restart(t testing.TB, opts ...Option) {
	t.Helper()
	s.Stop()
	s.mu.Lock()
	for _, opt := range opts {
		opt(s.opts)
	}
	s.mu.Unlock()
	s.start(t)
}

// Nats returns the running server, for what only its own API can tell; nil
// while it is stopped.
func (s *Server) Nats() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// Conn opens a connection of its own, which ends with the test. It reconnects
// for ever, and soon, so that it survives a Restart.
func (s *Server) Conn(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	all := append([]nats.Option{
		nats.Name(t.Name()),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)
	nc, err := nats.Connect(s.URL, all...)
	if err != nil {
		t.Fatalf("connect to %s: %v", s.URL, err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStream opens a connection of its own and returns its JetStream context.
func (s *Server) JetStream(t testing.TB, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(s.Conn(t, opts...))
	if err != nil {
		t.Fatalf("jetstream: %v", err)
	}
	return js
}

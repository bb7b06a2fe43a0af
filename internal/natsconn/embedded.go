package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// readyWithin bounds the start; recovering a large store takes its time.
	readyWithin = 5 * time.Minute
	readyPoll   = 20 * time.Millisecond
)

// Embedded is a nats-server in this process.
type Embedded struct {
	cfg      EmbeddedConfig
	log      *slog.Logger
	maxStore int64
	lock     *lock

	restart sync.Mutex // held by Restart and Shutdown, for as long as they take

	mu      sync.Mutex // guards srv, stopped, and the ports in opts
	opts    *server.Options
	srv     *server.Server // nil while it doesn't run
	stopped bool
}

// StartEmbedded runs a server. Its errors name what to change: a port or a
// directory that is in use, an address that would be open to everybody.
func StartEmbedded(ctx context.Context, cfg EmbeddedConfig, log *slog.Logger) (_ *Embedded, err error) {
	e := &Embedded{cfg: cfg, log: log}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("nats store: %w", err)
	}
	e.opts, err = cfg.options()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("nats store: %w: choose a directory that can be written to", err)
	}
	if e.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.lock.release()
		}
	}()
	if e.maxStore, err = maxStore(cfg.Dir, cfg.MaxStore); err != nil {
		return nil, err
	}
	e.opts.JetStreamMaxStore = e.maxStore
	if err := e.start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// start runs a server and waits until it serves. The server is not told of
// ctx: it is shut down if ctx ends first.
func (e *Embedded) start(ctx context.Context) error {
	if err := portsFree(e.opts); err != nil {
		return err
	}
	opts := e.opts.Clone() // the server fills in what is left open
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("embedded nats-server: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLoggerV2(serverLog{log: e.log, fatal: fatal}, false, false, false)
	srv.Start()
	if err := awaitReady(ctx, srv, fatal); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return fmt.Errorf("embedded nats-server: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.srv = srv
	// A restart has to come back on the same ports.
	if addr, ok := srv.Addr().(*net.TCPAddr); ok {
		e.opts.Port = addr.Port
	}
	e.opts.MQTT.Port = opts.MQTT.Port
	return nil
}

// awaitReady: that a server runs and says that JetStream is on proves nothing
// if its directory is bad; ready for connections and healthy does.
func awaitReady(ctx context.Context, srv *server.Server, fatal <-chan string) error {
	deadline := time.NewTimer(readyWithin)
	defer deadline.Stop()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		if srv.ReadyForConnections(readyPoll) {
			if health(srv) == nil {
				return nil
			}
		}
		select {
		case reason := <-fatal:
			return errors.New(reason)
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("not ready within %v", readyWithin)
		case <-poll.C:
		}
	}
}

// Dial opens a connection inside the process. It comes back by itself after a
// Restart.
func (e *Embedded) Dial(ctx context.Context, log *slog.Logger, hooks Hooks) (*nats.Conn, error) {
	cfg := Config{User: e.cfg.User, Password: e.cfg.Password, Token: e.cfg.Token, Instance: e.cfg.Instance}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	return dial(ctx, "nats://in-process", append(opts, nats.InProcessServer(e)), log, hooks)
}

// InProcessConn returns a connection to the server of the moment. nats.go
// calls it for each attempt to connect.
func (e *Embedded) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	srv := e.srv
	e.mu.Unlock()
	if srv == nil {
		return nil, errors.New("the embedded nats-server is not running")
	}
	return srv.InProcessConn()
}

// URL is where other processes connect; "" if it listens nowhere.
func (e *Embedded) URL() string {
	srv := e.Server()
	if srv == nil || e.opts.DontListen {
		return ""
	}
	return srv.ClientURL()
}

// MQTTAddr is the host:port that MQTT clients connect to; "" if there is none.
func (e *Embedded) MQTTAddr() string {
	if e.cfg.MQTT == "" {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return net.JoinHostPort(e.opts.MQTT.Host, strconv.Itoa(e.opts.MQTT.Port))
}

// MaxStore is how many bytes may be stored.
func (e *Embedded) MaxStore() int64 { return e.maxStore }

// Free is how many bytes may still be written to the disk of the store; false
// if that is not known.
func (e *Embedded) Free() (bytes uint64, known bool) {
	bytes, err := freeBytes(e.cfg.Dir)
	return bytes, err == nil
}

// Server is the server of the moment, for its monitoring functions; nil while
// it is not running.
func (e *Embedded) Server() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.srv
}

// Healthy asks the server for its full health: after a write error a stream
// stays read-only until a Restart, and only this shows it.
func (e *Embedded) Healthy() error {
	srv := e.Server()
	if srv == nil {
		return errors.New("the embedded nats-server is not running")
	}
	return health(srv)
}

// Restart stops the server and starts it on the same store and ports.
// Connections made with Dial come back.
func (e *Embedded) Restart(ctx context.Context) error {
	e.restart.Lock()
	defer e.restart.Unlock()
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if stopped {
		return errors.New("the embedded nats-server was shut down")
	}
	e.stop()
	return e.start(ctx)
}

// Shutdown stops the server and waits until it has. More than once does
// nothing more.
func (e *Embedded) Shutdown() {
	e.restart.Lock()
	defer e.restart.Unlock()
	e.mu.Lock()
	stopped := e.stopped
	e.stopped = true
	e.mu.Unlock()
	if stopped {
		return
	}
	e.stop()
	e.lock.release()
}

func (e *Embedded) stop() {
	e.mu.Lock()
	srv := e.srv
	e.srv = nil
	e.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

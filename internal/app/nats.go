package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/state"
)

// assumedStore is how much room an external server is taken to have when
// neither the configuration nor the account says.
const assumedStore = 8 << 30

// storeRole names the connection over which everything is stored.
const storeRole = "store"

// connections to the NATS server in use. Reading, storing and delivering each
// have their own, so that a flood on one doesn't hold up the others.
type connections struct {
	embedded           *natsconn.Embedded // nil with an external server
	ingest, store, out *nats.Conn
	js                 jetstream.JetStream // over store
	maxStore           int64
	// reconnected gets a value when the store's connection has come back.
	reconnected chan struct{}
}

func (c *connections) url() string {
	if c.embedded != nil {
		return c.embedded.URL()
	}
	return c.store.ConnectedUrlRedacted()
}

func (c *connections) close() {
	for _, nc := range []*nats.Conn{c.ingest, c.out, c.store} {
		if nc != nil {
			nc.Close()
		}
	}
	if c.embedded != nil {
		c.embedded.Shutdown()
	}
}

func (s *service) openNATS(ctx context.Context) (err error) {
	s.nats = &connections{reconnected: make(chan struct{}, 1)}
	if s.cfg.NATS.Embedded() {
		s.nats.embedded, err = natsconn.StartEmbedded(ctx, embeddedConfig(s.cfg.NATS), s.log)
		if err != nil {
			return err
		}
	}
	for _, to := range []struct {
		conn **nats.Conn
		role string
	}{{&s.nats.ingest, "ingest"}, {&s.nats.store, storeRole}, {&s.nats.out, "out"}} {
		if *to.conn, err = s.dial(ctx, to.role); err != nil {
			return err
		}
	}
	if err := natsconn.Check(ctx, s.nats.store); err != nil {
		return err
	}
	if s.nats.js, err = jetstream.New(s.nats.store, jetstream.WithDefaultTimeout(10*time.Second)); err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	return s.measureStore(ctx)
}

func (s *service) dial(ctx context.Context, role string) (*nats.Conn, error) {
	log := s.log.With("connection", role)
	hooks := natsconn.Hooks{Reconnected: func() {
		if role != storeRole {
			return
		}
		select {
		case s.nats.reconnected <- struct{}{}:
		default:
		}
	}}
	if s.nats.embedded != nil {
		return s.nats.embedded.Dial(ctx, log, hooks)
	}
	return natsconn.Dial(ctx, NATSConfig(s.cfg.NATS, role), log, hooks)
}

// NATSConfig is how an external server is reached. The role tells the
// connections of one process apart on the server.
func NATSConfig(n config.NATS, role string) natsconn.Config {
	return natsconn.Config{
		URL: n.URL.Reveal(), Creds: n.Creds, NKey: n.NKey,
		User: n.User, Password: string(n.Password), Token: string(n.Token),
		CA: n.TLS.CA, Cert: n.TLS.Cert, Key: n.TLS.Key,
		Instance: instance() + "/" + role,
	}
}

func embeddedConfig(n config.NATS) natsconn.EmbeddedConfig {
	return natsconn.EmbeddedConfig{
		Dir: n.StoreDir, Listen: n.Listen, MQTT: n.MQTTListen,
		User: n.User, Password: string(n.Password), Token: string(n.Token),
		MaxStore: int64(n.MaxStore), SyncAlways: n.Sync == config.SyncAlways,
		Instance: instance(),
	}
}

func instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r == '.' || r == ' ' {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// measureStore finds out how much room the streams have, and divides it.
func (s *service) measureStore(ctx context.Context) (err error) {
	switch {
	case s.nats.embedded != nil:
		s.nats.maxStore = s.nats.embedded.MaxStore()
	case s.cfg.NATS.MaxStore > 0:
		s.nats.maxStore = int64(s.cfg.NATS.MaxStore)
	default:
		s.nats.maxStore = assumedStore
		info, err := s.nats.js.AccountInfo(ctx)
		if err != nil {
			return fmt.Errorf("asking JetStream for its limits: %w", err)
		}
		if info.Limits.MaxStore > 0 {
			s.nats.maxStore = info.Limits.MaxStore
		}
	}
	s.budget, err = s.cfg.Budget(config.Size(s.nats.maxStore))
	if err != nil {
		return err
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "store", slog.Any("size", config.Size(s.nats.maxStore)), slog.Any("reserved", s.budget.Total()))
	return nil
}

// openStreams makes the streams for the state and the locations, and the
// source that reads them.
func (s *service) openStreams(ctx context.Context) (err error) {
	s.store, err = state.Open(ctx, s.nats.js, state.Config{
		Namespace:  s.cfg.NATS.Namespace,
		Partitions: s.cfg.Ingest.Partitions,
		MaxBytes:   int64(s.budget.State),
		Replicas:   s.cfg.NATS.Replicas,
	})
	if err != nil {
		return err
	}
	patterns, err := ingest.ParsePatterns(s.cfg.NATS.Namespace, s.cfg.Ingest.Subjects)
	if err != nil {
		return fmt.Errorf("ingest.subjects: %w", err)
	}
	in := ingest.Config{
		Conn: s.nats.ingest, Patterns: patterns, Partitions: s.cfg.Ingest.Partitions, Hooks: s.ingestHooks(),
	}
	if !s.cfg.Ingest.Durable {
		s.source, err = ingest.NewCore(in)
		return err
	}
	after, err := s.store.MaxPosition(ctx)
	if err != nil {
		return err
	}
	err = ingest.SetUpStream(ctx, s.nats.js, ingest.StreamConfig{
		Patterns: patterns, Partitions: s.cfg.Ingest.Partitions, MaxBytes: int64(s.budget.Ingest), After: after,
		Replicas: s.cfg.NATS.Replicas,
	})
	if err != nil {
		return err
	}
	in.Shared = true // while this process has most of the partitions
	in.Alone = s.manyReplicas
	durable, err := ingest.NewDurable(in)
	if err != nil {
		return err
	}
	s.source = durable
	s.trim = &ingest.Trim{
		Source: durable, Retention: s.cfg.Ingest.Retention, ReplayFrom: s.store.MinReplayFrom,
		Failed: func(err error) { s.log.Warn("trimming the location stream", "err", natsconn.Explain(err)) },
	}
	return nil
}

// ingestHooks counts, and logs what an operator has to know.
func (s *service) ingestHooks() ingest.Hooks {
	h := s.metrics.Ingest()
	lost := h.Lost
	h.Lost = func(partition int, n uint64) {
		lost(partition, n)
		s.log.Error("locations were gone before they were judged: the stream was purged or recreated", "partition", partition, "positions", n)
	}
	h.Rebuilt = func(partition int, cause error) {
		s.log.Warn("a partition is read anew from where it was", "partition", partition, "cause", natsconn.Explain(cause))
	}
	return h
}

package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/tripline/tripline/internal/natsconn"
)

// natsRole is the NATS server, with the settings of Tripline's embedded one,
// in a process of its own: it serves the router and the yardsticks alike.
type natsRole struct {
	server *natsconn.Embedded
	profiler
}

// natsStart says where it stores, and how much at most.
type natsStart struct {
	Dir      string `json:"dir"`
	MaxStore int64  `json:"max_store"`
}

func (n *natsRole) operations() map[string]operation {
	return map[string]operation{
		"start":   op(n.start),
		"profile": op(n.profiler.start),
		"stages":  op(n.profiler.stop),
		"read":    op(func(context.Context, struct{}) (any, error) { return readUsage(0), nil }),
	}
}

func (n *natsRole) start(ctx context.Context, arg natsStart) (_ any, err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n.server, err = natsconn.StartEmbedded(ctx, natsconn.EmbeddedConfig{
		Dir: arg.Dir, Listen: "127.0.0.1:0", MaxStore: arg.MaxStore, Instance: "load",
	}, log)
	if err != nil {
		return nil, err
	}
	return n.server.URL(), nil
}

func (n *natsRole) close() {
	if n.server != nil {
		n.server.Shutdown()
	}
}

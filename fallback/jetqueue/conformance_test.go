package jetqueue_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/fallback/queuetest"
	"github.com/tripline/tripline/internal/natstest"
)

// store is a queue's store: a server that is started anew, in this process,
// each time that the queue is opened again.
type store struct {
	server *natstest.Server
	cfg    jetqueue.Config
	nc     *nats.Conn
	queue  *jetqueue.Queue // the open one
}

func (s *store) Open(t *testing.T) fallback.Queue {
	if s.queue != nil {
		_ = s.queue.Close()
		s.nc.Close()
		s.server.Restart(t)
	}
	s.nc = s.server.Conn(t)
	s.queue = open(t, s.nc, func(c *jetqueue.Config) { *c = s.cfg })
	return s.queue
}

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T, small bool) queuetest.Store {
		cfg := jetqueue.Config{Consumer: "dispatch", MaxBytes: 16 << 20, DeadMaxBytes: 1 << 20}
		if small {
			cfg.MaxBytes = queuetest.Room
		}
		return &store{server: natstest.Start(t), cfg: cfg}
	})
}

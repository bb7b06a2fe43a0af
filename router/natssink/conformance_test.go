package natssink_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/natssink"
	"github.com/tripline/tripline/router/sinktest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// rig is a NATS server, a connection to it that can be held for the sink, and
// one for the consumer.
type rig struct {
	server *natstest.Server
	relay  *sinktest.Relay
	sink   *nats.Conn
	own    *nats.Conn

	mu  sync.Mutex // guards got
	got []sinktest.Received
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{server: natstest.Start(t)}
	r.relay = sinktest.NewRelay(t, strings.TrimPrefix(r.server.URL, "nats://"))
	var err error
	r.sink, err = nats.Connect("nats://"+r.relay.Addr, nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.sink.Close)
	r.own = r.server.Conn(t)
	return r
}

// subscribe remembers what arrives, and answers with reply if it isn't nil.
func (r *rig) subscribe(t *testing.T, reply func(*nats.Msg)) {
	t.Helper()
	if _, err := r.own.Subscribe("out.>", func(m *nats.Msg) {
		r.mu.Lock()
		r.got = append(r.got, received(m.Header, m.Data))
		r.mu.Unlock()
		if reply != nil {
			reply(m)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.own.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) received() []sinktest.Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sinktest.Received(nil), r.got...)
}

func received(h nats.Header, body []byte) sinktest.Received {
	return sinktest.Received{
		ID:          h.Get("Nats-Msg-Id"),
		Body:        body,
		Traceparent: h.Get("traceparent"),
		Redriven:    h.Get("Tripline-Redriven") == "true",
	}
}

// behave does what every NATS consumer can.
func (r *rig) behave(t *testing.T, b sinktest.Behaviour) bool {
	switch b {
	case sinktest.Hang:
		r.relay.Hold()
	case sinktest.Away:
		r.server.Stop()
		waitFor(t, "the client notices", func() bool { return !r.sink.IsConnected() })
	case sinktest.Accept:
		r.relay.Release()
		if r.server.Nats() == nil {
			r.server.Restart(t)
		}
		waitFor(t, "the consumer is back", func() bool { return r.own.FlushTimeout(time.Second) == nil })
	default:
		return false
	}
	return true
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

func TestPublishConformance(t *testing.T) {
	sinktest.Test(t, func(t *testing.T) sinktest.Consumer {
		r := newRig(t)
		r.subscribe(t, nil)
		s := natssink.NewPublish(r.sink, natssink.Config{Subject: "out.{device}"})
		t.Cleanup(func() { _ = s.Close() })
		return sinktest.Consumer{
			Sink:     s,
			Received: r.received,
			Behave:   func(b sinktest.Behaviour) bool { return r.behave(t, b) },
		}
	})
}

func TestRequestConformance(t *testing.T) {
	sinktest.Test(t, func(t *testing.T) sinktest.Consumer {
		r := newRig(t)
		var mu sync.Mutex
		refuses := false
		r.subscribe(t, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			reply := nats.NewMsg(m.Reply)
			if refuses {
				reply.Header.Set("Nats-Service-Error-Code", "500")
				reply.Header.Set("Nats-Service-Error", "out of order")
			}
			_ = m.RespondMsg(reply)
		})
		return sinktest.Consumer{
			Sink:     natssink.NewRequest(r.sink, natssink.Config{Subject: "out.{device}"}),
			Received: r.received,
			Behave: func(b sinktest.Behaviour) bool {
				mu.Lock()
				refuses = b == sinktest.Refuse
				mu.Unlock()
				return b == sinktest.Refuse || r.behave(t, b)
			},
		}
	})
}

func TestJetStreamConformance(t *testing.T) {
	sinktest.Test(t, func(t *testing.T) sinktest.Consumer {
		r := newRig(t)
		js, err := jetstream.New(r.own)
		if err != nil {
			t.Fatal(err)
		}
		stream := jetstream.StreamConfig{Name: "OUT", Subjects: []string{"out.>"}, Discard: jetstream.DiscardNew}
		s, err := js.CreateStream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		return sinktest.Consumer{
			Sink: natssink.NewJetStream(r.sink, natssink.Config{Subject: "out.{device}", Stream: "OUT"}),
			Received: func() (all []sinktest.Received) {
				info, err := s.Info(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for seq := info.State.FirstSeq; seq != 0 && seq <= info.State.LastSeq; seq++ {
					m, err := s.GetMsg(t.Context(), seq)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, received(m.Header, m.Data))
				}
				return all
			},
			Behave: func(b sinktest.Behaviour) bool {
				if b == sinktest.Hang || b == sinktest.Away {
					return r.behave(t, b)
				}
				r.behave(t, sinktest.Accept)
				next := stream
				if b == sinktest.Refuse {
					next.MaxBytes = 1 // full
				}
				waitFor(t, "the stream is changed", func() bool {
					_, err := js.UpdateStream(t.Context(), next)
					return err == nil
				})
				return true
			},
		}
	})
}

func trigger(device, fence string) router.Trigger {
	return router.Trigger{ID: "TRIGGER1", Device: device, Fence: fence, Kind: 1, Body: []byte("{}")}
}

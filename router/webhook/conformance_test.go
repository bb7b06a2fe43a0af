package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/tripline/tripline/router/sinktest"
	"github.com/tripline/tripline/router/webhook"
)

func TestConformance(t *testing.T) { sinktest.Test(t, startConsumer) }

// startConsumer is a webhook consumer in the suite's hands.
func startConsumer(t *testing.T) sinktest.Consumer {
	var behaviour atomic.Int32
	release := make(chan struct{})
	c := newConsumer(func(w http.ResponseWriter, r *http.Request) {
		switch sinktest.Behaviour(behaviour.Load()) {
		case sinktest.Refuse:
			w.WriteHeader(http.StatusInternalServerError)
		case sinktest.Hang:
			select {
			case <-release:
			case <-r.Context().Done():
			}
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	c.Start()
	server := c.Server
	t.Cleanup(func() { server.Close() })
	t.Cleanup(func() { close(release) })
	addr := c.Listener.Addr().String()
	return sinktest.Consumer{
		Sink: sink(t, webhook.Config{URL: c.URL, Secrets: []webhook.Secret{oldSecret}}),
		Behave: func(b sinktest.Behaviour) bool {
			was := sinktest.Behaviour(behaviour.Swap(int32(b)))
			if b == sinktest.Away {
				server.Close()
			}
			if was == sinktest.Away && b == sinktest.Accept {
				// The same address, so that the sink finds it again.
				again := httptest.NewUnstartedServer(c.Config.Handler)
				_ = again.Listener.Close()
				again.Listener = relisten(t, addr)
				again.Start()
				server = again
			}
			return true
		},
		Received: func() (all []sinktest.Received) {
			for _, call := range c.received() {
				all = append(all, sinktest.Received{
					ID:          call.header.Get("Webhook-Id"),
					Body:        call.body,
					Traceparent: call.header.Get("Traceparent"),
					Redriven:    call.header.Get("Tripline-Redriven") == "true",
				})
			}
			return all
		},
	}
}

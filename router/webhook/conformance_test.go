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

// Over TLS and HTTP/2 calls share connections; a consumer that is away can't
// come back with another certificate, so that it just stays.
func TestConformanceOverHTTP2(t *testing.T) {
	sinktest.Test(t, func(t *testing.T) sinktest.Consumer {
		var behaviour atomic.Int32
		c, cert, _ := serveTLS(t, func(s *httptest.Server) {
			s.EnableHTTP2 = true
			recorder := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch sinktest.Behaviour(behaviour.Load()) {
				case sinktest.Refuse:
					http.Error(w, "no", http.StatusInternalServerError)
				case sinktest.Hang:
					<-r.Context().Done()
				default:
					recorder.ServeHTTP(w, r)
				}
			})
		})
		return sinktest.Consumer{
			Sink:     sink(t, webhook.Config{URL: c.URL, TLS: webhook.TLS{CA: cert}}),
			Received: c.deliveries,
			Behave: func(b sinktest.Behaviour) bool {
				behaviour.Store(int32(b))
				return b != sinktest.Away
			},
		}
	})
}

// deliveries are the calls as the suite sees them.
func (c *consumer) deliveries() (all []sinktest.Received) {
	for _, call := range c.received() {
		all = append(all, sinktest.Received{
			ID:          call.header.Get("Webhook-Id"),
			Body:        call.body,
			Traceparent: call.header.Get("Traceparent"),
			Redriven:    call.header.Get("Tripline-Redriven") == "true",
		})
	}
	return all
}

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
		Received: c.deliveries,
	}
}

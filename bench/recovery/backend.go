package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// backend is the model of the consumer behind a real HTTP server.
type backend struct {
	*stage
	server  *http.Server
	url     string
	waiting map[int32]chan struct{} // by call: closed when it is answered
}

// serveBackend starts a consumer that is sick from began on.
func serveBackend(ctx context.Context, sc *scenario, began time.Time, seed uint64) (*backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sim{scenario: sc, pollAt: never, tickAt: never}
	s.consumer = consumer{consumerConfig: sc.consumer, s: s, rng: stream(seed, 2), heals: sc.outage, crowded: -1}
	b := &backend{stage: newStage(s, began, nil), url: "http://" + listener.Addr().String(), waiting: map[int32]chan struct{}{}}
	s.replied = func(id int32) {
		close(b.waiting[id])
		delete(b.waiting, id)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /triggers", func(w http.ResponseWriter, r *http.Request) { b.take(ctx, w, r) })
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { b.health(ctx, w, r) })
	b.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go b.server.Serve(listener) // ends with close
	return b, nil
}

func (b *backend) close() { b.server.Close() }

// take is a call. The model goes on with it if the caller gives up.
func (b *backend) take(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	answered := make(chan struct{})
	b.do(ctx, func() {
		id := b.s.newCall()
		b.s.calls[id].begin, b.s.calls[id].working = b.s.now, true
		b.waiting[id] = answered
		b.s.consumer.accept(b.s.now, id)
	})
	select {
	case <-answered:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}

// health takes what a warm call takes at the moment.
func (b *backend) health(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	latency := b.s.consumer.healthy
	b.ask(ctx, func() {
		if b.s.consumer.sick(b.s.now) {
			latency = sickLatency
		}
	})
	select {
	case <-time.After(latency):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}

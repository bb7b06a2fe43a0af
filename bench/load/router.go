package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

// heapEvery is how often the heap is looked at for its peak.
const heapEvery = 50 * time.Millisecond

// routerRole is Tripline itself: what `tripline run` runs, with eyes on it.
type routerRole struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when app.Run has returned, after err is set
	err    error
	profiler
	peak atomic.Uint64 // bytes of heap
}

// routerStarted is what is known once it runs.
type routerStarted struct {
	NATS    string  `json:"nats"`
	Admin   string  `json:"admin"`
	Seconds float64 `json:"seconds"` // from the reading of the configuration
}

func (r *routerRole) operations() map[string]operation {
	return map[string]operation{
		"start":   op(r.start),
		"stop":    op(r.stop),
		"read":    op(func(context.Context, struct{}) (any, error) { return readUsage(0), nil }),
		"free":    op(func(context.Context, struct{}) (any, error) { debug.FreeOSMemory(); return readUsage(0), nil }),
		"profile": op(r.profiler.start),
		"stages":  op(r.profiler.stop),
		"peak":    op(func(context.Context, struct{}) (any, error) { return r.peak.Swap(0), nil }),
	}
}

func (r *routerRole) start(ctx context.Context, path string) (any, error) {
	begun := time.Now()
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.done = make(chan struct{})
	started := make(chan app.Started, 1)
	go func() {
		defer close(r.done)
		r.err = app.Run(ctx, cfg, app.Options{
			Version: "load",
			Log:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
			Started: func(s app.Started) { started <- s },
		})
	}()
	select {
	case s := <-started:
		go r.watchHeap()
		return routerStarted{NATS: s.NATS, Admin: s.Admin, Seconds: time.Since(begun).Seconds()}, nil
	case <-r.done:
		return nil, errors.Join(errors.New("the router ended"), r.err)
	}
}

// watchHeap keeps the peak until the router ends.
func (r *routerRole) watchHeap() {
	tick := time.NewTicker(heapEvery)
	defer tick.Stop()
	for {
		heap := readUsage(0).Heap
		for old := r.peak.Load(); heap > old && !r.peak.CompareAndSwap(old, heap); old = r.peak.Load() {
		}
		select {
		case <-tick.C:
		case <-r.done:
			return
		}
	}
}

func (r *routerRole) stop(context.Context, struct{}) (any, error) {
	if r.cancel == nil {
		return nil, nil
	}
	r.cancel()
	<-r.done
	return nil, r.err
}

func (r *routerRole) close() { _, _ = r.stop(context.Background(), struct{}{}) }

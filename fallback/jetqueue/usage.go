package jetqueue

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/fallback"
)

const (
	// refreshBusy is how soon after a change the server is asked again, and
	// refreshIdle how often without one: other replicas use the stream too.
	refreshBusy = time.Second
	refreshIdle = 15 * time.Second
)

// usage is the size of a queue as last known: what the server said, and what
// was added and removed since.
type usage struct {
	mu      sync.Mutex // guards the fields below
	items   int64
	bytes   int64
	max     uint64
	changed chan struct{} // holds a token when something changed; set once
}

func (u *usage) init(s jetstream.StreamState, max uint64) {
	u.items, u.bytes, u.max = int64(s.Msgs), int64(s.Bytes), max
	u.changed = make(chan struct{}, 1)
}

// add counts n items. The size of a removed one isn't known: it counts as the
// mean until the server says better.
func (u *usage) add(n, bytes int64) {
	u.mu.Lock()
	if n < 0 && u.items > 0 {
		bytes = n * (u.bytes / u.items)
	}
	u.items = max(u.items+n, 0)
	u.bytes = max(u.bytes+bytes, 0)
	u.mu.Unlock()
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

func (u *usage) set(s streamState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.items, u.bytes = int64(s.Messages), int64(s.Bytes)
}

// Usage implements [fallback.Queue].
func (q *Queue) Usage() fallback.Usage {
	u := &q.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	return fallback.Usage{Items: int(u.items), Bytes: uint64(u.bytes), MaxBytes: u.max}
}

// watchUsage keeps the usage near the truth until ctx ends.
func (q *Queue) watchUsage(ctx context.Context) {
	timer := time.NewTimer(refreshIdle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.usage.changed:
		case <-timer.C:
		}
		// An unanswered question changes nothing: what is known stays, and
		// the next change or pause asks again.
		if state, err := q.info(ctx, q.parked.name, ""); err == nil {
			q.usage.set(state)
		}
		timer.Reset(refreshBusy)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(refreshIdle)
	}
}

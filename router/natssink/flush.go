package natssink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxFlush bounds a flush, whatever its waiters' deadlines.
const maxFlush = 5 * time.Second

// flusher shares flushes between deliveries: whoever publishes while a flush
// is under way waits for the next, together with all others who do. The first
// flushes by itself; a goroutine goes on while somebody waits.
type flusher struct {
	nc *nats.Conn
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below; not held over a flush
	running bool
	next    *round // who waits for the next flush, nil for nobody
	rounds  int    // flushes begun
}

// round is one flush and its waiters.
type round struct {
	deadline time.Time     // the latest of the waiters'
	done     chan struct{} // closed after err is set
	err      error
}

// wait returns when a flush that began after the call has been answered.
func (f *flusher) wait(ctx context.Context) error {
	r := f.join(ctx)
	if r == nil {
		err := f.flush(ctx)
		if f.more() {
			f.wg.Go(f.run)
		}
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("no answer to the flush: %w", ctx.Err())
	}
}

// join adds a waiter to the next round; nil: the caller is to flush, and then
// to see to the others.
func (f *flusher) join(ctx context.Context) *round {
	deadline := time.Now().Add(maxFlush)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running {
		f.running = true
		f.rounds++
		return nil
	}
	if f.next == nil {
		f.next = &round{done: make(chan struct{})}
	}
	r := f.next
	if deadline.After(r.deadline) {
		r.deadline = deadline
	}
	return r
}

// more says whether anybody waits for another flush; if not, the next to come
// flushes by itself.
func (f *flusher) more() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = f.next != nil
	return f.running
}

// run flushes round after round until nobody waits.
func (f *flusher) run() {
	for more := true; more; more = f.more() {
		f.mu.Lock()
		r := f.next
		f.next = nil
		f.rounds++
		f.mu.Unlock()
		ctx, cancel := context.WithDeadline(context.Background(), r.deadline)
		r.err = f.flush(ctx)
		cancel()
		close(r.done)
	}
}

func (f *flusher) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxFlush)
	defer cancel()
	err := f.nc.FlushWithContext(ctx)
	switch {
	case errors.Is(err, nats.ErrConnectionClosed):
		// What the client also says when the connection broke meanwhile.
		return errors.New("the connection to NATS was lost before it answered the flush")
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("no answer to the flush: %w", err)
	}
	return err
}

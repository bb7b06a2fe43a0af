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

// flusher shares flushes between deliveries: those that publish while one
// flush is under way all wait for the next. Its goroutine lives only while
// somebody waits.
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
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("no answer to the flush: %w", ctx.Err())
	}
}

// join adds a waiter to the next round.
func (f *flusher) join(ctx context.Context) *round {
	deadline := time.Now().Add(maxFlush)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &round{done: make(chan struct{})}
	}
	r := f.next
	if deadline.After(r.deadline) {
		r.deadline = deadline
	}
	if !f.running {
		f.running = true
		f.wg.Go(f.run)
	}
	return r
}

// run flushes round after round until nobody waits.
func (f *flusher) run() {
	for {
		f.mu.Lock()
		r := f.next
		f.next = nil
		if r == nil {
			f.running = false
			f.mu.Unlock()
			return
		}
		f.rounds++
		f.mu.Unlock()
		ctx, cancel := context.WithDeadline(context.Background(), r.deadline)
		r.err = f.nc.FlushWithContext(ctx)
		cancel()
		if errors.Is(r.err, nats.ErrConnectionClosed) {
			// What the client also says when the connection broke meanwhile.
			r.err = errors.New("the connection to NATS was lost before it answered the flush")
		}
		close(r.done)
	}
}

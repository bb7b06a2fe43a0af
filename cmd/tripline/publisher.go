package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// window is how many fixes are on their way at most.
	window = 1024
	// ackWithin is how long an acknowledgement may take.
	ackWithin = 5 * time.Second
	// pauseFirst and pauseMax bound the wait before a failed one is sent again.
	pauseFirst = 100 * time.Millisecond
	pauseMax   = 2 * time.Second
)

// publisher sends locations, many at once, and sees each acknowledged: by the
// stream that takes it, or in core mode by Tripline itself. It keeps order:
// when one fails, it waits for all that are on their way, and then sends the
// failed ones again, in order, each with its id, before anything new. What was
// sent after a failed one may have been stored meanwhile; that is counted.
//
// One goroutine calls publish and flush; acknowledgements come in on the
// connection's own.
type publisher struct {
	nc       *nats.Conn
	inbox    string // the reply subject without its number
	sub      *nats.Subscription
	retryFor time.Duration
	wake     chan struct{} // holds one token when something was answered
	look     *time.Ticker  // for what is overdue

	mu     sync.Mutex         // guards what is below
	room   int                // how many may be on their way before settle has to know
	next   uint64             // number of the next message
	flight map[uint64]*flying // sent and not acknowledged
	failed []*flying          // to be sent again, in no order
	newest map[string]uint64  // by subject: the highest number acknowledged
	counts publishCounts
}

// publishCounts is what became of the messages.
type publishCounts struct {
	acked      int            // stored, or taken by Tripline
	duplicates int            // of these, there before
	overtaken  int            // of these, stored after a later one of their device
	refused    map[string]int // for good, by reason
	again      int            // sent more than once
}

func (c publishCounts) refusals() (n int) {
	for _, k := range c.refused {
		n += k
	}
	return n
}

// flying is a message that is not acknowledged yet.
type flying struct {
	number  uint64 // rises in the order of the file; stays when it is sent again
	subject string
	id      string
	payload []byte
	sent    time.Time
	err     error // of the last try
}

func newPublisher(nc *nats.Conn, retryFor time.Duration) (*publisher, error) {
	p := &publisher{
		nc: nc, inbox: nc.NewInbox() + ".", retryFor: retryFor,
		wake: make(chan struct{}, 1), look: time.NewTicker(ackWithin / 10),
		flight: map[uint64]*flying{}, newest: map[string]uint64{},
		counts: publishCounts{refused: map[string]int{}},
	}
	var err error
	// What was on its way when the connection broke won't be acknowledged.
	nc.SetDisconnectErrHandler(func(*nats.Conn, error) { p.expire(time.Now().Add(ackWithin), errLost) })
	if p.sub, err = nc.Subscribe(p.inbox+"*", p.answered); err != nil {
		return nil, fmt.Errorf("listening for acknowledgements: %w", err)
	}
	return p, nil
}

func (p *publisher) close() {
	p.look.Stop()
	p.sub.Unsubscribe()
}

// publish sends one message when there is room for it. The error is final.
func (p *publisher) publish(ctx context.Context, subject, id string, payload []byte) error {
	// Waiting for half of the window costs one wake-up instead of hundreds.
	if busy, failed, _ := p.state(); busy >= window || failed > 0 {
		if err := p.settle(ctx, window/2); err != nil {
			return err
		}
	}
	p.mu.Lock()
	f := &flying{number: p.next, subject: subject, id: id, payload: append([]byte(nil), payload...)}
	p.next++
	p.mu.Unlock()
	p.send(f)
	return nil
}

// flush returns when everything is acknowledged.
func (p *publisher) flush(ctx context.Context) error { return p.settle(ctx, 0) }

// settle waits until at most room messages are on their way and none has
// failed, sending again what has: one, after a pause; and when that is stored,
// the others at once.
func (p *publisher) settle(ctx context.Context, room int) error {
	p.mu.Lock()
	p.room = room
	p.mu.Unlock()
	since, before := time.Time{}, -1 // of the first failure without progress
	pause := pauseFirst
	for {
		busy, failed, settled := p.state()
		switch {
		case failed == 0 && busy <= room:
			return nil
		case failed == 0 || busy > 0:
			if err := p.await(ctx); err != nil {
				return err
			}
			continue
		case before >= 0 && settled > before:
			since, before, pause = time.Time{}, -1, pauseFirst
			p.sendAgain(failed)
			continue
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > p.retryFor:
			return fmt.Errorf("not acknowledged for %v: %w", p.retryFor, p.lastError())
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		before, pause = settled, min(2*pause, pauseMax)
		p.sendAgain(1)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// await returns when an acknowledgement came in, or it is time to look for
// those that are overdue.
func (p *publisher) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.wake:
	case now := <-p.look.C:
		p.expire(now, errNoAck)
	}
	return nil
}

// state counts what is on its way, what has failed, and what is done with.
func (p *publisher) state() (busy, failed, settled int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flight), len(p.failed), p.counts.acked + p.counts.refusals()
}

// seen is what became of the messages so far.
func (p *publisher) seen() publishCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.refused = maps.Clone(c.refused)
	return c
}

func (p *publisher) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return explain(p.failed[0])
}

// send puts a message on its way.
func (p *publisher) send(f *flying) {
	msg := &nats.Msg{
		Subject: f.subject, Reply: p.inbox + strconv.FormatUint(f.number, 10), Data: f.payload,
		Header: nats.Header{jetstream.MsgIDHeader: {f.id}},
	}
	f.sent = time.Now()
	p.mu.Lock()
	p.flight[f.number] = f
	p.mu.Unlock()
	if err := p.nc.PublishMsg(msg); err != nil {
		p.fail(f.number, err)
	}
}

// sendAgain sends the n oldest of the failed ones, in order.
func (p *publisher) sendAgain(n int) {
	p.mu.Lock()
	slices.SortFunc(p.failed, func(a, b *flying) int { return cmp.Compare(a.number, b.number) })
	again := slices.Clone(p.failed[:min(n, len(p.failed))])
	p.failed = p.failed[len(again):]
	p.counts.again += len(again)
	p.mu.Unlock()
	for _, f := range again {
		p.send(f)
	}
}

// fail takes a message off its way, to be sent again.
func (p *publisher) fail(number uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.flight[number]; ok {
		delete(p.flight, number)
		f.err = err
		p.failed = append(p.failed, f)
	}
	p.signal()
}

// signal wakes settle if there is something to do for it. The caller holds
// the lock.
func (p *publisher) signal() {
	if len(p.flight) > p.room && len(p.failed) == 0 {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

var (
	errNoAck = errors.New("no acknowledgement")
	errLost  = errors.New("connection lost")
)

// expire fails what has been on its way for too long.
func (p *publisher) expire(now time.Time, err error) {
	p.mu.Lock()
	var late []uint64
	for n, f := range p.flight {
		if now.Sub(f.sent) >= ackWithin {
			late = append(late, n)
		}
	}
	p.mu.Unlock()
	for _, n := range late {
		p.fail(n, err)
	}
}

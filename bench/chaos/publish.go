package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const (
	publishers = 16
	ackWithin  = 2 * time.Second
	retryAfter = 50 * time.Millisecond
)

// fleet publishes the locations of all journeys, each until it is
// acknowledged: the same message again with the same id while the server is
// away. The messages of a device are stored in the order in which they were
// made, because the next one is only sent after that.
type fleet struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	seed   uint64
	size   int
	rate   float64 // messages per second
	expect *expectations
	since  func() time.Duration

	stored  atomic.Int64
	retries atomic.Int64

	mu      sync.Mutex           // guards positions
	placed  map[string]placement // by message id
	highest uint64               // position of what is stored
}

// placement is where and when a message was stored.
type placement struct {
	sequence uint64
	at       time.Duration
}

func newFleet(url string, seed uint64, size int, rate float64, expect *expectations, since func() time.Duration) (*fleet, error) {
	nc, err := nats.Connect(url, nats.Name("chaos-fleet"), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(retryAfter), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // that the server is away is no news
	if err != nil {
		return nil, fmt.Errorf("connecting the fleet to %s: %w", url, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("opening JetStream for the fleet: %w", err)
	}
	return &fleet{
		nc: nc, js: js, seed: seed, size: size, rate: rate,
		expect: expect, since: since, placed: map[string]placement{},
	}, nil
}

func (f *fleet) close() { f.nc.Close() }

// drive publishes until driving ends, and then returns when all that was begun
// is stored. It returns an error if running ends before.
func (f *fleet) drive(driving, running context.Context) error {
	group, groupCtx := errgroup.WithContext(running)
	for p := range publishers {
		oracle, err := newOracle(f.expect)
		if err != nil {
			return err
		}
		var journeys []*journey
		for n := p; n < f.size; n += publishers {
			journeys = append(journeys, newJourney(f.seed, n))
		}
		group.Go(func() error { return f.publishAll(driving, groupCtx, journeys, oracle) })
	}
	return group.Wait()
}

// publishAll publishes some of the journeys, in turn.
func (f *fleet) publishAll(driving, running context.Context, journeys []*journey, o *oracle) error {
	if len(journeys) == 0 {
		return nil
	}
	pace := time.NewTicker(time.Duration(publishers / f.rate * float64(time.Second)))
	defer pace.Stop()
	for n := 0; ; n++ {
		for _, l := range journeys[n%len(journeys)].next() {
			select {
			case <-pace.C:
			case <-running.Done():
				return context.Cause(running)
			}
			o.judge(l, f.since())
			if err := f.publish(running, l); err != nil {
				return err
			}
		}
		if driving.Err() != nil {
			o.finish(f.since())
			return nil
		}
	}
}

// publish stores one message, however often it takes.
func (f *fleet) publish(running context.Context, l location) error {
	for {
		ctx, cancel := context.WithTimeout(running, ackWithin)
		ack, err := f.js.PublishMsg(ctx, &nats.Msg{Subject: l.subject, Data: l.payload}, jetstream.WithMsgID(l.id), jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil {
			f.stored.Add(1)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.highest = max(f.highest, ack.Sequence)
			if _, ok := f.placed[l.id]; !ok {
				f.placed[l.id] = placement{ack.Sequence, f.since()}
			}
			return nil
		}
		f.retries.Add(1)
		timer := time.NewTimer(retryAfter)
		select {
		case <-timer.C:
		case <-running.Done():
			timer.Stop()
			return fmt.Errorf("message %s is not stored: %w", l.id, err)
		}
	}
}

// last is the highest position so far.
func (f *fleet) last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest
}

func (f *fleet) placement(message string) (placement, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.placed[message]
	return p, ok
}

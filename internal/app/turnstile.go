package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/internal/natsconn"
)

const (
	// turnWithin bounds a question to the bucket; when it passes unanswered,
	// each replica has only its own breaker.
	turnWithin = 2 * time.Second
	// turnEvery is how often it is asked whether another's turn is over.
	turnEvery = 100 * time.Millisecond
	// turnLook is how often the own probes are looked at during a turn.
	turnLook = 25 * time.Millisecond
	// turnAgain is the pause before the turn is given back again.
	turnAgain = 500 * time.Millisecond
	// turnUnused ends a turn in which nothing is probed: there is nothing to
	// probe with, and others wait.
	turnUnused = time.Second
)

// turns are what only one replica may do at a time.
type turns interface {
	Take(ctx context.Context, name string) (bool, error)
	Release(ctx context.Context, name string) error
}

// turnstile lets one replica at a time probe a consumer: the breakers of all
// together then have no more probes in flight than one. It is the gate of an
// outlet.
//
// A turn lasts from the first probe of a half-open episode until the breaker
// has closed or opened again and the last probe has ended.
type turnstile struct {
	turns  turns
	name   string
	look   func() breaker.Snapshot
	log    *slog.Logger
	mine   atomic.Bool
	wanted chan struct{} // has a value while a probe waits
}

func newTurnstile(t turns, consumer string, look func() breaker.Snapshot, log *slog.Logger) *turnstile {
	return &turnstile{turns: t, name: consumer, look: look, log: log, wanted: make(chan struct{}, 1)}
}

// open says whether it is our turn, and asks for one if not.
func (t *turnstile) open() bool {
	if t.mine.Load() {
		return true
	}
	select {
	case t.wanted <- struct{}{}:
	default:
	}
	return false
}

// run takes turns when they are wanted, until ctx ends.
func (t *turnstile) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wanted:
		}
		if !t.take(ctx) {
			continue
		}
		t.mine.Store(true)
		t.last(ctx)
		t.mine.Store(false)
		t.release(ctx)
	}
}

// take waits for our turn. It is false when none is needed any more.
func (t *turnstile) take(ctx context.Context) bool {
	for t.look().State == breaker.HalfOpen {
		ask, cancel := context.WithTimeout(ctx, turnWithin)
		ours, err := t.turns.Take(ask, t.name)
		cancel()
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			t.log.Warn("the replicas can't agree on who probes; each goes by its own breaker", "consumer", t.name, "err", natsconn.Explain(err))
			return true
		}
		if ours {
			return true
		}
		if !sleep(ctx, turnEvery/2+rand.N(turnEvery)) {
			return false
		}
	}
	return false
}

// last returns when the turn is over.
func (t *turnstile) last(ctx context.Context) {
	unused := time.Now()
	for {
		s := t.look()
		switch {
		case s.State != breaker.HalfOpen:
			return
		case s.ProbesInFlight > 0:
			unused = time.Now()
		case time.Since(unused) > turnUnused:
			return
		}
		if !sleep(ctx, turnLook) {
			return
		}
	}
}

// release gives the turn back once no probe of it is in flight, which the
// breaker bounds. It goes on trying, or nobody else could ever probe; but if
// we want the turn again meanwhile, we have it.
func (t *turnstile) release(ctx context.Context) {
	for t.look().ProbesInFlight > 0 {
		sleep(context.WithoutCancel(ctx), turnLook)
	}
	for {
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWithin)
		err := t.turns.Release(ask, t.name)
		cancel()
		if err == nil {
			return
		}
		t.log.Warn("giving back the turn to probe; it is tried again", "consumer", t.name, "err", natsconn.Explain(err))
		if len(t.wanted) > 0 || !sleep(ctx, turnAgain) {
			return
		}
	}
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
)

// arbiter is whose turn it is, for turnstiles in virtual time.
type arbiter struct {
	mu     sync.Mutex // guards all
	holder string
	away   bool
}

type player struct {
	*arbiter
	name string
}

var errAway = errors.New("nobody answers")

func (p player) Take(context.Context, string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return false, errAway
	}
	if p.holder == "" {
		p.holder = p.name
	}
	return p.holder == p.name, nil
}

func (p player) Release(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return errAway
	}
	if p.holder == p.name {
		p.holder = ""
	}
	return nil
}

func (a *arbiter) set(away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = away
}

// side is a turnstile with the state of its breaker.
type side struct {
	*turnstile
	mu  sync.Mutex // guards now
	now breaker.Snapshot
}

func newSide(a *arbiter, name string) *side {
	s := &side{}
	s.turnstile = newTurnstile(player{a, name}, "dispatch", func() breaker.Snapshot {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now
	}, slog.New(slog.DiscardHandler))
	return s
}

func (s *side) is(state breaker.State, probes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.State, s.now.ProbesInFlight = state, probes
}

// turnstiles runs a story of two of them in virtual time.
func turnstiles(t *testing.T, story func(t *testing.T, a *arbiter, x, y *side)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		a := &arbiter{}
		x, y := newSide(a, "x"), newSide(a, "y")
		for _, s := range []*side{x, y} {
			s.is(breaker.HalfOpen, 0)
			runs.Go(func() { s.run(ctx) })
		}
		story(t, a, x, y)
		for _, s := range []*side{x, y} {
			s.is(breaker.Closed, 0)
		}
		cancel()
		runs.Wait()
	})
}

func wantOpen(t *testing.T, what string, s *side, want bool) {
	t.Helper()
	s.open()
	time.Sleep(200 * time.Millisecond)
	if got := s.open(); got != want {
		t.Errorf("%s: its turn %t, want %t", what, got, want)
	}
}

func TestTurnsFollowOneAnother(t *testing.T) {
	turnstiles(t, func(t *testing.T, _ *arbiter, x, y *side) {
		wantOpen(t, "x, first", x, true)
		x.is(breaker.HalfOpen, 2)
		wantOpen(t, "y meanwhile", y, false)
		time.Sleep(time.Minute)
		wantOpen(t, "y while x probes on", y, false)
		x.is(breaker.Open, 1) // reopened, and one probe hangs
		wantOpen(t, "y while a probe of x hangs", y, false)
		x.is(breaker.Open, 0)
		wantOpen(t, "y at last", y, true)
	})
}

// Who has nothing to probe with does not keep the others from it.
func TestATurnThatIsNotUsedEnds(t *testing.T) {
	turnstiles(t, func(t *testing.T, _ *arbiter, x, y *side) {
		wantOpen(t, "x", x, true)
		wantOpen(t, "y meanwhile", y, false)
		time.Sleep(turnUnused + time.Second)
		wantOpen(t, "y after a while", y, true)
	})
}

func TestWithoutAnArbiterEachGoesByItself(t *testing.T) {
	turnstiles(t, func(t *testing.T, a *arbiter, x, y *side) {
		a.set(true)
		wantOpen(t, "x", x, true)
		wantOpen(t, "y", y, true)
	})
}

// A turn that can't be given back at first is given back later.
func TestATurnIsGivenBackInTheEnd(t *testing.T) {
	turnstiles(t, func(t *testing.T, a *arbiter, x, y *side) {
		wantOpen(t, "x", x, true)
		a.set(true)
		x.is(breaker.Closed, 0)
		time.Sleep(10 * time.Second)
		a.set(false)
		time.Sleep(time.Second)
		wantOpen(t, "y", y, true)
	})
}

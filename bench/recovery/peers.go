package main

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	sony "github.com/sony/gobreaker/v2"

	"github.com/tripline/tripline/breaker"
)

// The peers read the clock. Their runs happen inside a testing/synctest
// bubble, whose clock a clock value moves along with the simulation's.

// step is how finely the bubble's clock follows: a peer sees time up to so
// much later than it is.
const step = 10 * time.Millisecond

// peerWindow is how long a careful user lets a peer stay open.
const peerWindow = 5 * time.Second

var errBad = errors.New("failed or slow")

// clock moves a bubble's time.
type clock struct{ at time.Duration }

func (c *clock) follow(now time.Duration) {
	if now-c.at >= step {
		time.Sleep(now - c.at)
		c.at = now
	}
}

// gobreaker is sony/gobreaker with a rolling window like ours, slow calls
// counted as failures, and five successes to close.
type gobreaker struct {
	clock
	cb    *sony.TwoStepCircuitBreaker[struct{}]
	st    breaker.State
	until time.Duration // while open: its clock has passed the window's end
}

func newGobreaker(s *sim, _ *rand.Rand) policy {
	g := &gobreaker{}
	g.cb = sony.NewTwoStepCircuitBreaker[struct{}](sony.Settings{
		MaxRequests: 5, Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: peerWindow,
		ReadyToTrip: func(c sony.Counts) bool {
			return c.ConsecutiveFailures >= 5 || c.Requests >= 10 && c.TotalFailures*2 >= c.Requests
		},
		OnStateChange: func(_ string, _, to sony.State) {
			g.st = map[sony.State]breaker.State{
				sony.StateClosed: breaker.Closed, sony.StateOpen: breaker.Open, sony.StateHalfOpen: breaker.HalfOpen,
			}[to]
			g.until = s.now + peerWindow + step
			s.moved(s.now, g.st, peerWindow)
		},
	})
	return g
}

func (g *gobreaker) admit(now time.Duration) (ticket, bool) {
	g.follow(now)
	done, err := g.cb.Allow()
	return ticket{done: done}, err == nil
}

func (g *gobreaker) report(now time.Duration, t ticket, ok bool, latency time.Duration) {
	g.follow(now)
	if !ok || latency > limit {
		t.done(errBad)
	} else {
		t.done(nil)
	}
}

func (g *gobreaker) poll(now time.Duration) time.Duration {
	if g.st == breaker.Open && now < g.until {
		return g.until
	}
	g.follow(now)
	if g.st != breaker.Open {
		return now + time.Second
	}
	g.cb.State() // ends the open window
	return now + step
}

func (g *gobreaker) hint(time.Duration)      {}
func (g *gobreaker) state() breaker.State    { return g.st }
func (g *gobreaker) ordinary() time.Duration { return 0 }

// failsafe is failsafe-go in the same spirit.
type failsafe struct {
	clock
	cb circuitbreaker.CircuitBreaker[any]
	st breaker.State
}

func newFailsafe(s *sim, _ *rand.Rand) policy {
	f := &failsafe{}
	f.cb = circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(0.5, 10, 10*time.Second).
		WithSuccessThreshold(5).
		WithDelay(peerWindow).
		WithJitterFactor(0.2).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
			f.st = map[circuitbreaker.State]breaker.State{
				circuitbreaker.ClosedState: breaker.Closed, circuitbreaker.OpenState: breaker.Open,
				circuitbreaker.HalfOpenState: breaker.HalfOpen,
			}[e.NewState]
			s.moved(s.now, f.st, peerWindow)
		}).
		Build()
	return f
}

func (f *failsafe) admit(now time.Duration) (ticket, bool) {
	f.follow(now)
	return ticket{}, f.cb.TryAcquirePermit()
}

func (f *failsafe) report(now time.Duration, _ ticket, ok bool, latency time.Duration) {
	f.follow(now)
	if !ok || latency > limit {
		f.cb.RecordFailure()
	} else {
		f.cb.RecordSuccess()
	}
}

func (f *failsafe) poll(now time.Duration) time.Duration {
	f.follow(now)
	return now + time.Second
}

func (f *failsafe) hint(time.Duration)      {}
func (f *failsafe) state() breaker.State    { return f.st }
func (f *failsafe) ordinary() time.Duration { return 0 }

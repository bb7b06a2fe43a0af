package main

import (
	"math/rand/v2"
	"time"

	"github.com/tripline/tripline/breaker"
)

// policy is a breaker as the simulation sees it. It tells the simulation of
// each of its transitions through sim.moved.
type policy interface {
	admit(now time.Duration) (ticket, bool)
	report(now time.Duration, t ticket, ok bool, latency time.Duration)
	poll(now time.Duration) (next time.Duration)
	hint(now time.Duration)
	state() breaker.State
	ordinary() time.Duration
}

// ticket is what a policy hands out for a call.
type ticket struct {
	permit     breaker.Permit
	generation int
	done       func(error)
}

// discipline is a policy with what the outlet around it does.
type discipline struct {
	name   string
	build  func(*sim, *rand.Rand) policy
	ramp   bool // after a close the calls in flight are ramped up
	hints  bool // a health check runs while open
	chosen bool // the outlet chooses the probes while half-open ...
	cap    int  // ... of which so many may be in flight
	known  bool // the state can be asked: nothing is tried while open
	peer   bool // it reads the clock: it runs in a bubble
}

func disciplines() []discipline {
	return []discipline{
		{name: "eager", build: newEager, known: true},
		{name: "cooldown", known: true, chosen: true, cap: 1, build: ofBreaker(breaker.Config{
			Base: 20 * time.Second, Max: 20 * time.Second, Factor: 1, Jitter: breaker.None, Settle: breaker.None,
			Probes: 1, Successes: 1,
		})},
		{name: "backoff+cap", known: true, chosen: true, cap: 2, build: ofBreaker(breaker.Config{})},
		{name: "tripline", known: true, chosen: true, cap: 2, ramp: true, build: ofBreaker(breaker.Config{})},
		{name: "tripline+hint", known: true, chosen: true, cap: 2, ramp: true, hints: true, build: ofBreaker(breaker.Config{})},
		{name: "sony/gobreaker", known: true, peer: true, build: newGobreaker},
		{name: "failsafe-go", peer: true, build: newFailsafe},
	}
}

// ours is the product's breaker.
type ours struct {
	b  *breaker.Breaker
	st breaker.State
}

func ofBreaker(standard breaker.Config) func(*sim, *rand.Rand) policy {
	return func(s *sim, rng *rand.Rand) policy {
		p := &ours{}
		c := standard // runs go side by side, each with a breaker of its own
		c.P99, c.Timeout, c.Rand = limit, clientTimeout, rng.Float64
		c.Hooks.Transition = func(t breaker.Transition) {
			p.st = t.To
			s.moved(t.At, t.To, t.Window)
		}
		p.b = breaker.New(c)
		return p
	}
}

func (p *ours) admit(now time.Duration) (ticket, bool) {
	permit, err := p.b.Admit(now)
	return ticket{permit: permit}, err == nil
}

func (p *ours) report(now time.Duration, t ticket, ok bool, _ time.Duration) {
	o := breaker.Outcome{Kind: breaker.OK}
	if !ok {
		o.Kind = breaker.Failed
	}
	t.permit.Report(now, o)
}

func (p *ours) poll(now time.Duration) time.Duration { return p.b.Poll(now) }
func (p *ours) hint(now time.Duration)               { p.b.Hint(now) }
func (p *ours) state() breaker.State                 { return p.st }
func (p *ours) ordinary() time.Duration              { return p.b.Ordinary() }

// eager is what is written first: it opens for a second, lets everything
// through when that is over, and closes on the first success. It trips by the
// same rules as ours.
type eager struct {
	s          *sim
	closed     *breaker.Breaker // for its trip rules
	st         breaker.State
	until      time.Duration
	generation int
}

func newEager(s *sim, _ *rand.Rand) policy {
	e := &eager{s: s}
	e.start()
	return e
}

func (e *eager) start() {
	e.closed = breaker.New(breaker.Config{P99: limit, Timeout: clientTimeout, Hooks: breaker.Hooks{
		Transition: func(t breaker.Transition) {
			if t.From == breaker.Closed {
				e.open(t.At)
			}
		},
	}})
}

func (e *eager) move(at time.Duration, to breaker.State) {
	e.st = to
	e.generation++
	e.s.moved(at, to, time.Second)
}

func (e *eager) open(at time.Duration) {
	e.until = at + time.Second
	e.move(at, breaker.Open)
}

func (e *eager) admit(now time.Duration) (ticket, bool) {
	if e.st == breaker.Open {
		e.poll(now)
	}
	t := ticket{generation: e.generation}
	switch e.st {
	case breaker.Open:
		return t, false
	case breaker.Closed:
		var err error
		t.permit, err = e.closed.Admit(now)
		return t, err == nil
	}
	return t, true
}

func (e *eager) report(now time.Duration, t ticket, ok bool, _ time.Duration) {
	switch {
	case t.generation != e.generation:
	case e.st == breaker.Closed:
		o := breaker.Outcome{Kind: breaker.OK}
		if !ok {
			o.Kind = breaker.Failed
		}
		t.permit.Report(now, o)
	case ok:
		e.start()
		e.move(now, breaker.Closed)
	default:
		e.open(now)
	}
}

func (e *eager) poll(now time.Duration) time.Duration {
	if e.st == breaker.Closed {
		if next := e.closed.Poll(now); e.st == breaker.Closed {
			return next
		}
	}
	if e.st == breaker.Open {
		if now < e.until {
			return e.until
		}
		e.move(e.until, breaker.HalfOpen)
	}
	return never
}

func (e *eager) hint(time.Duration)      {}
func (e *eager) state() breaker.State    { return e.st }
func (e *eager) ordinary() time.Duration { return 0 }

// Package breaker is a circuit breaker that trips on latency first and
// recovers through a half-open state with a hard cap on its probes.
//
// A [Breaker] is a synchronous machine: it has no goroutine and no timer, and
// it never reads the clock. The caller passes the time, as a duration since
// any origin of its choice that never jumps ([Now] is one), so the machine
// runs the same live, replayed, or in virtual time. What time alone decides
// (a call that is still in flight past the limit, the end of an open window)
// happens at its own moment, whenever the machine is next asked: the same
// calls give the same states however often [Breaker.Poll] is called.
//
//	p, err := b.Admit(breaker.Now())
//	if err != nil {
//		return err // ErrOpen or ErrProbeCap: do something else with the work
//	}
//	err = call(ctx)
//	p.Report(breaker.Now(), outcome(err))
//
// [Breaker.Do] does that in one call. A [Ramp] limits the calls in flight
// after the breaker has closed, so that a backlog doesn't fell the consumer
// again.
package breaker

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Never is what Poll returns when nothing is pending.
const Never = time.Duration(math.MaxInt64)

// past is before any time.
const past = time.Duration(math.MinInt64)

var processStart = time.Now()

// Now returns the time since the process started, monotonic. It is the clock
// of [Breaker.Do], and an origin for those who have none of their own.
func Now() time.Duration { return time.Since(processStart) }

// Breaker protects one consumer. Its methods may be called from any
// goroutine; the times that they pass are expected to rise, up to what
// goroutines overtake each other by.
//
// While closed, taking a permit and handing it back well are a few atomic
// steps without the lock; whatever is less usual than that takes it.
type Breaker struct {
	// Read without the lock on every call, written under it.
	gate    atomic.Uint64             // generation<<gateBits | admitting | quiet
	due     atomic.Int64              // before this time alone decides nothing
	places  atomic.Pointer[places]    // where the permits are that are out
	filling atomic.Pointer[slice]     // of the window
	refusal atomic.Pointer[OpenError] // while open
	cfg     Config                    // with its defaults, never written to
	lease   time.Duration             // how long a permit lives; never written to

	_ [64]byte // the above stays in the caches of all while the lock changes hands

	mu         sync.Mutex // guards all below; never held over a hook
	state      State
	generation uint64        // rises with every transition
	clock      time.Duration // the newest time seen under the lock
	since      time.Duration // of the last transition
	cause      cause         // of the last transition
	window     window
	row        int // bad calls in a row
	ladder     ladder
	probing    probing
	measured   measured
	counters   Counters
	notices    notices
	moments    []moment // scratch of catchUp
}

// What the gate says beside the generation.
const (
	admitting = 1 << 0 // closed: Admit gives a permit
	quiet     = 1 << 1 // closed, and a healthy report changes nothing but a count
	gateBits  = 2
)

// New returns a closed breaker. It panics on a configuration that
// [Config.Validate] refuses, so that one can be part of an expression; call
// Validate first on what comes from a user.
func New(c Config) *Breaker {
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("breaker.New: %v", err))
	}
	c = c.withDefaults()
	b := &Breaker{cfg: c, lease: c.Timeout + leaseGrace, clock: past}
	b.window = window{width: c.Window / sliceCount, top: bucket(c.P99), ends: past}
	b.ladder = ladder{asked: past, trust: true}
	b.places.Store(newPlaces(b, nil, firstPlaces))
	b.gate.Store(admitting)
	b.due.Store(int64(past)) // the first call starts the window
	return b
}

// Config returns the configuration, with defaults filled in and [None]
// resolved to 0.
func (b *Breaker) Config() Config { return b.cfg }

// Permit is the right to make one call. It is reported exactly once; a copy
// is the same permit. The zero Permit is none.
type Permit struct {
	// Four words, no more: that many the compiler keeps in registers.
	places *places
	begin  time.Duration
	word   uint64 // as it was put into the place
	where  uint64 // generation<<32 | probe<<31 | index
}

// Probe says whether the call is a probe.
func (p Permit) Probe() bool { return p.word&aProbe != 0 }

// Generation is the breaker's generation at the time it was admitted; it
// rises with every transition.
func (p Permit) Generation() uint64 { return p.where >> 32 }

func (p Permit) index() uint32 { return uint32(p.where) &^ (1 << 31) }

// Admit asks for a permit for one call that begins now. The error is an
// [*OpenError] (for which errors.Is(err, [ErrOpen]) holds) while the breaker
// is open, and [ErrProbeCap] while it is half-open with all its probes in
// flight. A call that was not admitted counts nowhere.
func (b *Breaker) Admit(now time.Duration) (Permit, error) {
	gate := b.gate.Load()
	if gate&admitting == 0 {
		if r := b.refusal.Load(); r != nil && now < r.Until {
			return Permit{}, r
		}
		return b.admit(now)
	}
	if int64(now) >= b.due.Load() {
		return b.admit(now)
	}
	ps := b.places.Load()
	i := ps.home(now)
	free := ps.at[i].Load()
	if free&busy != 0 {
		return b.admit(now)
	}
	generation := gate >> gateBits
	w := word(free, generation, now)
	if !ps.at[i].CompareAndSwap(free, w) {
		return b.admit(now)
	}
	p := Permit{ps, now, w, generation<<32 | uint64(i)}
	if b.gate.Load()>>gateBits != generation {
		p.take() // a transition came between: this was never admitted
		return b.admit(now)
	}
	return p, nil
}

// admit is Admit with the lock.
func (b *Breaker) admit(now time.Duration) (Permit, error) {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	switch {
	case b.state == Open:
		return Permit{}, b.refusal.Load()
	case b.state == Closed:
		return b.place(now, false), nil
	case b.probing.inFlight >= b.cfg.Probes:
		return Permit{}, ErrProbeCap
	}
	b.probing.begin()
	b.dueBy(now + b.cfg.P99 + 1)
	return b.place(now, true), nil
}

// Outcome is how a call ended.
type Outcome struct {
	Kind Kind
	// RetryAfter is what a consumer that failed asked for, 0 for nothing. If
	// the breaker trips before it has passed, the open window lasts at least
	// until then, or [Config.Max].
	RetryAfter time.Duration
}

// Report hands back a permit and says how the call ended. The verdict is what
// the breaker made of it. Only the first report of a permit counts.
func (p Permit) Report(now time.Duration, o Outcome) Verdict {
	if p.places == nil {
		return VerdictRepeated
	}
	b := p.places.owner
	latency := now - p.begin
	if o.Kind == OK && b.gate.Load() == p.where>>32<<gateBits|admitting|quiet &&
		int64(now) < b.due.Load() && latency <= b.cfg.P99 {
		s := b.filling.Load()
		if p.places.at[p.index()].CompareAndSwap(p.word, p.word&serialMask) {
			s.healthy[bucket(latency)].Add(1)
			return VerdictHealthy
		}
	}
	return b.report(now, p, o)
}

// report is Report with the lock.
func (b *Breaker) report(now time.Duration, p Permit, o Outcome) Verdict {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	w, ok := p.take()
	switch {
	case !ok && now-p.begin >= b.lease:
		b.counters.Stale++
		return b.tell(p.Probe(), VerdictStale)
	case !ok:
		b.counters.Repeated++
		return b.tell(p.Probe(), VerdictRepeated)
	case p.Probe():
		return b.tell(true, b.judgeProbe(now, p, o))
	}
	return b.judge(now, p, w, o)
}

// Poll applies what time alone decides and returns when to call it again, or
// [Never]. Whoever wants slow calls noticed while they are in flight, and
// hooks on time, arms one timer for it; also after Admit, if none is armed.
func (b *Breaker) Poll(now time.Duration) (next time.Duration) {
	b.mu.Lock()
	defer b.unlockAndTell()
	b.advance(now)
	return b.next()
}

// State returns the state at the newest time that the breaker was told.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

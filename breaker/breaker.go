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
// goroutine; the times that they pass are expected to rise, and one that lies
// before the newest counts as the newest.
type Breaker struct {
	cfg   Config        // with its defaults, never written to
	lease time.Duration // how long a permit lives

	// refusal is set while the breaker is open, so that Admit can refuse
	// without the lock. It is written under mu.
	refusal atomic.Pointer[OpenError]

	mu         sync.Mutex // guards all below; never held over a hook
	state      State
	generation uint64        // rises with every transition
	clock      time.Duration // the newest time seen
	due        time.Duration // time alone decides nothing before this
	since      time.Duration // of the last transition
	reason     Reason        // of the last transition
	calls      calls
	window     window
	row        badRow
	ladder     ladder
	probing    probing
	measured   measured
	counters   Counters
	notices    notices
}

// New returns a closed breaker. It panics on a configuration that
// [Config.Validate] refuses, so that one can be part of an expression; call
// Validate first on what comes from a user.
func New(c Config) *Breaker {
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("breaker.New: %v", err))
	}
	c = c.withDefaults()
	b := &Breaker{cfg: c, lease: c.Timeout + leaseGrace, due: Never, calls: newCalls(16)}
	b.clock, b.ladder.asked = past, past
	b.window.width = c.Window / sliceCount
	b.window.ends = past
	b.ladder.trust = true
	return b
}

// Config returns the configuration, with defaults filled in and [None]
// resolved to 0.
func (b *Breaker) Config() Config { return b.cfg }

// Permit is the right to make one call. It is reported exactly once; a copy
// is the same permit. The zero Permit is none.
type Permit struct {
	b          *Breaker
	serial     uint64
	generation uint64
	begin      time.Duration
	place      int32
	probe      bool
}

// Probe says whether the call is a probe.
func (p Permit) Probe() bool { return p.probe }

// Generation is the breaker's generation at the time it was admitted.
func (p Permit) Generation() uint64 { return p.generation }

// Admit asks for a permit for one call that begins now. The error is an
// [*OpenError] (for which errors.Is(err, [ErrOpen]) holds) while the breaker
// is open, and [ErrProbeCap] while it is half-open with all its probes in
// flight. A call that was not admitted counts nowhere.
func (b *Breaker) Admit(now time.Duration) (Permit, error) {
	if r := b.refusal.Load(); r != nil && now < r.Until {
		return Permit{}, r
	}
	b.mu.Lock()
	now = b.advance(now)
	if b.state != Closed {
		return b.admitProbe(now)
	}
	p := b.begin(now, false)
	if b.notices.waiting() {
		b.unlockAndTell()
		return p, nil
	}
	b.mu.Unlock()
	return p, nil
}

// admitProbe is Admit while open or half-open. It gives up the lock.
func (b *Breaker) admitProbe(now time.Duration) (Permit, error) {
	defer b.unlockAndTell()
	switch {
	case b.state == Open: // just tripped, or now fell
		return Permit{}, b.refusal.Load()
	case b.probing.inFlight >= b.cfg.Probes:
		return Permit{}, ErrProbeCap
	}
	b.probing.begin()
	return b.begin(now, true), nil
}

// begin takes up a call.
func (b *Breaker) begin(now time.Duration, probe bool) Permit {
	i := b.calls.add(now, b.generation, probe)
	b.due = min(b.due, now+b.cfg.P99+1)
	return Permit{b, b.calls.serial, b.generation, now, i, probe}
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
	b := p.b
	if b == nil {
		return VerdictRepeated
	}
	b.mu.Lock()
	now = b.advance(now)
	c := b.calls.get(p.place, p.serial)
	if c == nil {
		defer b.unlockAndTell()
		return b.tell(p.probe, b.late(now, p))
	}
	overdue := c.overdue
	b.calls.remove(p.place)
	if p.probe || overdue || o.Kind != OK || p.generation != b.generation {
		defer b.unlockAndTell()
		return b.tell(p.probe, b.judge(now, p, o, overdue))
	}
	b.judgeHealthy(now, now-p.begin)
	if b.notices.waiting() {
		b.unlockAndTell()
	} else {
		b.mu.Unlock()
	}
	return VerdictHealthy
}

// late is the verdict on a report whose permit has come back before.
func (b *Breaker) late(now time.Duration, p Permit) Verdict {
	if now-p.begin >= b.lease {
		b.counters.Stale++
		return VerdictStale
	}
	b.counters.Repeated++
	return VerdictRepeated
}

// Poll applies what time alone decides and returns when to call it again, or
// [Never]. Whoever wants slow calls noticed while they are in flight, and
// hooks on time, arms one timer for it; also after Admit, if none is armed.
func (b *Breaker) Poll(now time.Duration) (next time.Duration) {
	b.mu.Lock()
	defer b.unlockAndTell()
	b.advance(now)
	b.due = b.next()
	return b.due
}

// State returns the state at the newest time that the breaker was told.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

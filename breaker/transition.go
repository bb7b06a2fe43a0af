package breaker

import "time"

// move is the one place where the state changes.
func (b *Breaker) move(at time.Duration, to State, c cause) {
	from := b.state
	b.state, b.since, b.cause = to, at, c
	b.generation++
	b.row = 0
	b.refusal.Store(nil)
	switch to {
	case Open:
		b.refusal.Store(&OpenError{Until: b.ladder.until})
		b.dueBy(b.ladder.until)
	case Closed:
		// The window starts empty: what was counted before the trip says
		// nothing about the consumer now.
		b.filling.Store(b.window.reset(at))
		b.dueBy(min(at+b.cfg.P99+1, b.window.ends))
	}
	b.regate()
	// Whoever takes a place without the lock looks at the gate again after,
	// so every call of the old generation is either marked here or undone.
	b.places.Load().mark(stale)
	if b.cfg.Hooks.Transition != nil {
		b.notices.queue = append(b.notices.queue, notice{cause: c, change: Transition{
			From: from, To: to, At: at, Generation: b.generation, Reason: c.reason,
			Rung: b.ladder.rung, Window: b.ladder.window, Until: b.ladder.until,
		}})
	}
}

// trip opens a closed breaker.
func (b *Breaker) trip(at time.Duration, reason Reason) {
	c := b.describe(at, reason)
	if b.settled(at) {
		b.ladder.clean()
	} else if b.ladder.hinted {
		b.ladder.trust = false
	}
	b.ladder.hinted = false
	b.ladder.climb(at, &b.cfg)
	b.counters.Trips++
	b.move(at, Open, c)
}

// settled says whether the close is clean: nothing has tripped for Settle.
func (b *Breaker) settled(at time.Duration) bool {
	return b.state == Closed && at-b.since >= b.cfg.Settle
}

// halfOpen ends the open window.
func (b *Breaker) halfOpen(at time.Duration) {
	reason := ReasonWindowEnded
	switch {
	case b.ladder.hinted:
		reason = ReasonHint
	case b.ladder.pressed:
		reason = ReasonProbeNow
	}
	b.ladder.pressed = false
	b.probing.start(b.generation + 1)
	b.measured.fastest = 0
	b.move(at, HalfOpen, cause{reason: reason, window: b.ladder.window})
}

// reopen fails a half-open generation. Because that changes the generation,
// nothing else of it can fail it again.
func (b *Breaker) reopen(at time.Duration, reason Reason, kind Kind) {
	if b.ladder.hinted {
		b.ladder.trust, b.ladder.hinted = false, false
	}
	b.ladder.climb(at, &b.cfg)
	b.counters.Reopens++
	b.probing.reopened()
	b.move(at, Open, cause{
		reason: reason, kind: kind, limit: b.cfg.P99, alive: b.probing.slowRow >= aliveAfter, measured: b.measured.probeMedian(),
	})
}

// close ends a half-open generation well.
func (b *Breaker) close(at time.Duration) {
	n := b.probing.successes
	b.ladder.asked = past
	b.probing.slowRow = 0
	b.measured.count = 0
	b.counters.Closes++
	b.move(at, Closed, cause{reason: ReasonProbesHealthy, calls: n, limit: b.cfg.P99, measured: b.measured.fastest})
}

// Hint brings outside evidence that the consumer is well again, such as every
// passing health check from the second in a row on. It may end the open
// window early, never before [Config.Base] has passed since it began, nor
// before a Retry-After of the consumer, nor a window that an operator forced.
//
// A hint was wrong if a probe of the half-open state that it started fails,
// or if the breaker that it closed trips within [Config.Settle]. After a
// wrong one no hint is believed until the breaker has been closed for Settle.
func (b *Breaker) Hint(now time.Duration) {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	if b.state != Open || !b.ladder.trust || b.ladder.forced {
		return
	}
	if b.ladder.shorten(now, b.since, &b.cfg) {
		b.ladder.hinted, b.ladder.pressed = true, false
		b.shortened(now)
	}
}

// ForceOpen opens the breaker for a while, on an operator's behalf, whatever
// its state; if it is open already, the new window replaces the old one. The
// duration is 1 ms to 24 h, and cut to that; 0 means [Config.Max]. It is no
// rung of the ladder. Afterwards probes decide, as ever.
func (b *Breaker) ForceOpen(now, window time.Duration) {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	if b.settled(now) {
		b.ladder.clean()
	}
	if window == 0 {
		window = b.cfg.Max
	}
	b.ladder.hinted, b.ladder.pressed = false, false
	b.ladder.force(now, min(max(window, time.Millisecond), 24*time.Hour))
	b.counters.Forced++
	b.move(now, Open, cause{reason: ReasonForced, window: b.ladder.window})
}

// ProbeNow ends the open window on an operator's behalf, at once, or as soon
// as [Config.Base] has passed since it began. It does nothing in the other
// states.
func (b *Breaker) ProbeNow(now time.Duration) {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	if b.state != Open {
		return
	}
	b.ladder.asked = past
	if b.ladder.shorten(now, b.since, &b.cfg) {
		b.ladder.hinted, b.ladder.pressed = false, true
		b.shortened(now)
	}
}

// shortened makes a nearer end of the open window known.
func (b *Breaker) shortened(now time.Duration) {
	b.refusal.Store(&OpenError{Until: b.ladder.until})
	b.dueBy(b.ladder.until)
	b.advance(now)
}

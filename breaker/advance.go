package breaker

import "time"

// advance takes the clock to now, applies in order what time alone decides up
// to then, each at its own moment, and returns the clock: now, unless that
// fell.
func (b *Breaker) advance(now time.Duration) time.Duration {
	if now < b.clock {
		now = b.clock
	}
	b.clock = now
	if now >= b.due {
		for b.due = b.next(); b.due <= now; b.due = b.next() {
			b.happen(b.due)
		}
	}
	return now
}

// next returns when time alone next decides something.
func (b *Breaker) next() time.Duration {
	next := Never
	if b.state == Open {
		next = b.ladder.until
	}
	if c := b.calls.head(&b.calls.young); c != nil {
		next = min(next, c.begin+b.cfg.P99+1)
	}
	if c := b.calls.head(&b.calls.late); c != nil {
		next = min(next, c.begin+b.lease)
	}
	return next
}

// happen applies one thing that is due at that moment.
func (b *Breaker) happen(at time.Duration) {
	// A place is given back before the window ends, so that a half-open
	// breaker has all that it can have.
	if c := b.calls.head(&b.calls.late); c != nil && c.begin+b.lease <= at {
		b.expire(at, *c)
		return
	}
	if c := b.calls.head(&b.calls.young); c != nil && c.begin+b.cfg.P99 < at {
		b.calls.pass(b.calls.young.head)
		b.judgeOverdue(at, c)
		return
	}
	b.halfOpen(at)
}

// expire takes back the permit of a call that was never reported. It counts
// as a failure.
func (b *Breaker) expire(at time.Duration, c call) {
	b.calls.remove(b.calls.late.head)
	b.counters.Expired++
	switch {
	case c.probe:
		b.probing.answer(c.generation, false)
	case c.generation == b.generation:
		b.tell(false, VerdictFailed)
		b.judgeError(at, 0)
	}
}

// judgeOverdue judges a call that has just passed P99 in flight.
func (b *Breaker) judgeOverdue(at time.Duration, c *call) {
	if c.generation != b.generation {
		return
	}
	b.tell(c.probe, VerdictSlow)
	if c.probe {
		b.reopen(at, ReasonProbeSlow, Cancelled)
		return
	}
	b.turn(at)
	b.window.slice[b.window.at].calls++
	b.window.slice[b.window.at].over++
	b.window.sum.calls++
	b.window.sum.over++
	b.row.lengthen(c.serial, b.calls.serial)
	b.tripIfBad(at)
}

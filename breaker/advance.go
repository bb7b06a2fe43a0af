package breaker

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// moment is when a call in flight passes P99, or its permit's lease ends.
type moment struct {
	at  time.Duration
	in  *atomic.Uint64
	w   uint64 // what the place held
	end bool   // of the lease
}

// advance takes the clock to now, applies in order what time alone decides up
// to then, each at its own moment, and returns the clock: now, unless that
// fell.
func (b *Breaker) advance(now time.Duration) time.Duration {
	before := b.clock
	b.clock = max(now, before)
	if int64(b.clock) >= b.due.Load() {
		b.catchUp(before)
	}
	return b.clock
}

// catchUp applies what is due by the clock. before is the clock's last time.
func (b *Breaker) catchUp(before time.Duration) {
	moments := b.collect(before)
	for {
		switch {
		// A place is given back before the window ends, so that a half-open
		// breaker has all that it can have.
		case len(moments) > 0 && (b.state != Open || moments[0].at <= b.ladder.until):
			b.happen(moments[0])
			moments = moments[1:]
		case b.state == Open && b.ladder.until <= b.clock:
			b.halfOpen(b.ladder.until)
		case len(moments) > 0:
			b.happen(moments[0])
			moments = moments[1:]
		default:
			if b.state == Closed {
				b.turn(b.clock)
				b.regate()
			}
			b.due.Store(int64(b.soonest()))
			return
		}
	}
}

// collect returns what the calls in flight have due by the clock, in order.
func (b *Breaker) collect(before time.Duration) []moment {
	b.moments = b.moments[:0]
	b.places.Load().each(func(in *atomic.Uint64, w uint64) {
		began := begin(w, before)
		if at := began + b.cfg.P99 + 1; at <= b.clock && w&(overdue|stale) == 0 {
			b.moments = append(b.moments, moment{max(at, before), in, w, false})
		}
		if at := began + b.lease; at <= b.clock {
			b.moments = append(b.moments, moment{max(at, before), in, w, true})
		}
	})
	slices.SortFunc(b.moments, func(x, y moment) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.w&beginMask, y.w&beginMask))
	})
	return b.moments
}

// happen applies a moment of a call that may have been reported meanwhile, or
// marked by an earlier moment.
func (b *Breaker) happen(m moment) {
	mark := uint64(overdue)
	for {
		w := m.in.Load()
		if (w^m.w)&^marks != 0 {
			return
		}
		after := w | mark
		if m.end {
			after = w & serialMask
		}
		if !m.in.CompareAndSwap(w, after) {
			continue
		}
		if m.end {
			b.expired(m.at, w)
		} else if b.current(w) {
			b.judgeOverdue(m.at, w)
		}
		return
	}
}

// current says whether the call in a place belongs to this generation.
func (b *Breaker) current(w uint64) bool {
	return w&stale == 0 && (w^b.generation<<generationShift)&generationMask == 0
}

// expired judges a call whose permit was never reported: it has failed.
func (b *Breaker) expired(at time.Duration, w uint64) {
	b.counters.Expired++
	switch {
	case w&aProbe != 0:
		b.probing.answer(w, false)
	case b.current(w):
		b.tell(false, VerdictFailed)
		b.judgeBad(at, counts{errors: 1}, 0)
	}
}

// judgeOverdue judges a call that has just passed P99 in flight.
func (b *Breaker) judgeOverdue(at time.Duration, w uint64) {
	b.tell(w&aProbe != 0, VerdictSlow)
	if w&aProbe != 0 {
		b.reopen(at, ReasonProbeSlow, OK)
		return
	}
	b.lengthen(w)
	b.judgeBad(at, counts{calls: 1, over: 1}, 0)
}

// next returns when time alone next decides something about what is there
// now, or Never.
func (b *Breaker) next() time.Duration {
	next := Never
	if b.state == Open {
		next = b.ladder.until
	}
	b.places.Load().each(func(_ *atomic.Uint64, w uint64) {
		at := begin(w, b.clock)
		if w&(overdue|stale) == 0 {
			at += b.cfg.P99 + 1
		} else {
			at += b.lease
		}
		next = min(next, at)
	})
	return next
}

// soonest is next, also for calls that are yet to be admitted without the
// lock, and for the window.
func (b *Breaker) soonest() time.Duration {
	next := b.next()
	if b.state == Closed {
		next = min(next, b.clock+b.cfg.P99+1, b.window.ends)
	}
	return next
}

// dueBy makes sure that advance looks again by then.
func (b *Breaker) dueBy(at time.Duration) {
	if int64(at) < b.due.Load() {
		b.due.Store(int64(at))
	}
}

package breaker

import "time"

// rampTick is how often the window of a ramp is judged.
const rampTick = 250 * time.Millisecond

// catchUp plays, in order, the ticks that have ended by now and the calls
// that have passed the guard in flight.
func (r *Ramp) catchUp(now time.Duration) {
	for r.active {
		passes := Never
		if c := r.calls.oldest(); c != nil {
			passes = c.begin + r.guard + 1
		}
		switch {
		case passes <= min(now, r.ends):
			r.pass(r.calls.head)
			if r.overloaded() {
				r.shrink(passes)
				r.tick(passes, max(r.judged, r.last))
			}
		case r.ends <= now:
			r.judge()
			if idle := now - r.ends; idle > 2*rampTick && passes == Never {
				// Nothing can happen in ticks without calls.
				r.ends += (idle/rampTick - 1) * rampTick
			}
			r.tick(r.ends, r.judged)
		default:
			return
		}
	}
}

// pass counts a call that has passed the guard, once. One that began before
// the window shrank says nothing about the window as it is now.
func (r *Ramp) pass(place int32) {
	r.calls.pass(place)
	if r.calls.slab[place].begin >= r.shrunk {
		r.judged++
		r.over++
	}
}

// tick starts a tick; last is how many calls the one before judged.
func (r *Ramp) tick(now time.Duration, last int) {
	r.ends = now + rampTick
	r.judged, r.over, r.held, r.last = 0, 0, false, last
}

// overloaded says that more than 5 % of the calls of this tick are sure to
// pass the guard, unless there are more of them than in the last. It asks for
// three, so that in a quiet tick one is not yet enough.
func (r *Ramp) overloaded() bool { return r.over >= 3 && 20*r.over > max(r.judged, r.last) }

func (r *Ramp) shrink(now time.Duration) {
	r.window = max(1, r.window*7/10)
	r.shrunk = now
}

// judge ends a tick.
func (r *Ramp) judge() {
	if r.held {
		r.heldAt = r.ends
	}
	switch {
	case 20*r.over > r.judged:
		r.shrink(r.ends)
	// Growing takes more than not having to shrink: where calls queue for a
	// single slot behind the consumer's cache, a few that pass the guard now
	// are a few over the limit with one more in flight. A tick without calls
	// proves nothing.
	case r.held && r.judged > 0 && 100*r.over <= r.judged:
		r.window = min(r.window+1, r.cfg.Max)
	}
	if r.cfg.Ordinary != nil {
		if ordinary := r.cfg.Ordinary(); ordinary > 0 {
			r.setGuard(ordinary)
		}
	}
	if !r.backlog && (r.window >= r.cfg.Max || r.ends-r.heldAt >= r.cfg.Settle) {
		r.active = false
	}
}

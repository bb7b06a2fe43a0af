package breaker

import "time"

// badRow counts the bad calls in a row. A call lengthens the row only if it
// was admitted after the newest member had been judged, so that one pause,
// which makes every call in flight bad, counts once.
type badRow struct {
	length int
	serial uint64 // of the newest permit when the newest member was judged
}

func (r *badRow) lengthen(serial, newest uint64) {
	if r.length == 0 || serial > r.serial {
		r.length++
		r.serial = newest
	}
}

// judgeHealthy judges a call of this generation that was admitted while
// closed and reported OK within P99.
func (b *Breaker) judgeHealthy(now, latency time.Duration) {
	if now >= b.window.ends {
		b.turn(now)
	}
	w := &b.window
	w.slice[w.at].calls++
	w.sum.calls++
	w.hist[w.at][bucket(latency)]++
	b.row.length = 0
	if b.cfg.Hooks.Verdict != nil {
		b.tell(false, VerdictHealthy)
	}
	// Healthy calls too can complete the samples that a rule asks for.
	if w.sum.over|w.sum.errors != 0 {
		b.tripIfBad(now)
	}
}

// judgeError counts a failure of a call that has been counted as slow.
func (b *Breaker) judgeError(now time.Duration, retryAfter time.Duration) {
	b.turn(now)
	b.window.slice[b.window.at].errors++
	b.window.sum.errors++
	b.ladder.ask(now, retryAfter)
	b.tripIfBad(now)
}

// turn moves the window on, and keeps the median of a healthy one.
func (b *Breaker) turn(now time.Duration) {
	if now < b.window.ends {
		return
	}
	if b.state == Closed {
		b.measured.keep(&b.window)
	}
	b.window.turn(now)
}

// judge judges every report but that of a healthy call while closed.
func (b *Breaker) judge(now time.Duration, p Permit, o Outcome, overdue bool) Verdict {
	latency := now - p.begin
	if p.probe {
		return b.judgeProbe(now, p, o, latency)
	}
	switch {
	case p.generation != b.generation:
		b.counters.Stale++
		return VerdictStale
	case o.Kind == Ignored:
		return VerdictIgnored
	case o.Kind == Cancelled:
		return VerdictCancelled
	}
	b.turn(now)
	b.window.hist[b.window.at][bucket(latency)]++
	switch {
	case o.Kind == OK: // overdue: was judged then
		return VerdictSlow
	case overdue:
		b.judgeError(now, o.RetryAfter)
	default:
		b.window.slice[b.window.at].calls++
		b.window.sum.calls++
		b.row.lengthen(p.serial, b.calls.serial)
		b.judgeError(now, o.RetryAfter)
	}
	return VerdictFailed
}

// judgeProbe judges the report of a probe.
func (b *Breaker) judgeProbe(now time.Duration, p Permit, o Outcome, latency time.Duration) Verdict {
	if o.Kind == OK {
		b.measured.probe(latency, p.generation == b.generation)
	}
	if o.Kind == Ignored {
		b.probing.giveBack(p.generation)
	} else {
		b.probing.answer(p.generation, o.Kind == OK)
	}
	switch {
	case p.generation != b.generation:
		b.counters.Stale++
		return VerdictStale
	case o.Kind == Ignored:
		return VerdictIgnored
	case o.Kind != OK:
		b.ladder.ask(now, o.RetryAfter)
		b.reopen(now, ReasonProbeFailed, o.Kind)
		return VerdictFailed
	}
	b.probing.successes++
	if b.probing.successes >= b.cfg.Successes {
		b.close(now)
	}
	return VerdictHealthy
}

// tripIfBad opens a closed breaker if any rule says so. All comparisons are
// between integers.
func (b *Breaker) tripIfBad(now time.Duration) {
	s, c := b.window.sum, &b.cfg
	var reason Reason
	switch {
	// The P99 by nearest rank is over the limit exactly if more than one call
	// in a hundred is.
	case s.over >= minOver && s.calls >= c.MinSamples && 100*s.over > s.calls:
		reason = ReasonP99
	case s.calls >= c.RatioSamples && s.over > 0 && 100*s.over >= c.SlowPercent*s.calls:
		reason = ReasonSlowRatio
	case s.calls >= c.RatioSamples && s.errors > 0 && 100*s.errors >= c.ErrorPercent*s.calls:
		reason = ReasonErrorRatio
	case b.row.length >= c.Consecutive:
		reason = ReasonConsecutive
	default:
		return
	}
	b.trip(now, reason)
}

package breaker

import "time"

// judge judges the report of a call that was admitted while closed. w is what
// its place held.
func (b *Breaker) judge(now time.Duration, p Permit, w uint64, o Outcome) Verdict {
	switch {
	case p.Generation() != b.generation:
		b.counters.Stale++
		return b.tell(false, VerdictStale)
	case o.Kind == Ignored:
		return b.tell(false, VerdictIgnored)
	case o.Kind == Cancelled:
		return b.tell(false, VerdictCancelled)
	}
	latency := now - p.begin
	s := b.turn(now)
	if o.Kind == OK && w&overdue == 0 && latency <= b.cfg.P99 {
		s.healthy[bucket(latency)].Add(1)
		b.row = 0
		b.tell(false, VerdictHealthy)
		b.tripIfBad(now) // it can complete the samples that a rule asks for
		return VerdictHealthy
	}
	s.bad[bucket(latency)]++
	bad, verdict := counts{}, VerdictSlow
	if o.Kind != OK {
		bad.errors, verdict = 1, VerdictFailed
	}
	if w&overdue == 0 { // else that was judged when it passed P99
		bad.calls = 1
		if latency > b.cfg.P99 { // by a clock that another goroutine overtook
			bad.over = 1
		}
		b.lengthen(w)
		b.tell(false, verdict)
	} else if o.Kind != OK {
		b.tell(false, verdict)
	}
	if bad != (counts{}) { // else nothing new is known that a rule could judge
		b.judgeBad(now, bad, o.RetryAfter)
	}
	return verdict
}

// judgeBad counts a call that is not healthy.
func (b *Breaker) judgeBad(now time.Duration, bad counts, retryAfter time.Duration) {
	b.turn(now)
	b.window.add(bad)
	if bad.errors > 0 {
		b.ladder.ask(now, retryAfter)
	}
	b.tripIfBad(now)
}

// lengthen adds a bad call to the row, unless it was admitted before the
// row's newest member was judged: one pause makes every call in flight bad,
// and counts once.
func (b *Breaker) lengthen(w uint64) {
	if b.row == 0 || w&behind == 0 {
		b.row++
		b.places.Load().mark(behind)
	}
}

// judgeProbe judges the report of a probe.
func (b *Breaker) judgeProbe(now time.Duration, p Permit, o Outcome) Verdict {
	fresh := p.Generation() == b.generation
	if o.Kind == OK {
		b.measured.probe(now-p.begin, fresh)
	}
	if o.Kind == Ignored {
		b.probing.giveBack(p.word)
	} else {
		b.probing.answer(p.word, o.Kind == OK)
	}
	switch {
	case !fresh:
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

// turn moves the window on to now, keeps the median of a healthy one, and
// returns the slice to fill.
func (b *Breaker) turn(now time.Duration) *slice {
	if now >= b.window.ends && b.window.ends != past {
		b.measured.keep(&b.window)
	}
	s := b.window.turn(now)
	if s != b.filling.Load() {
		b.filling.Store(s)
	}
	return s
}

// tripIfBad opens a closed breaker if a rule says so.
func (b *Breaker) tripIfBad(now time.Duration) {
	if reason := b.broken(b.window.sum()); reason != ReasonNone {
		b.trip(now, reason)
		return
	}
	b.regate()
}

// broken returns the first rule that is broken, if any. All comparisons are
// between integers.
func (b *Breaker) broken(s counts) Reason {
	c := &b.cfg
	switch {
	// The P99 by nearest rank is over the limit exactly if more than one call
	// in a hundred is.
	case s.over >= minOver && s.calls >= c.MinSamples && 100*s.over > s.calls:
		return ReasonP99
	case s.over > 0 && s.calls >= c.RatioSamples && 100*s.over >= c.SlowPercent*s.calls:
		return ReasonSlowRatio
	case s.errors > 0 && s.calls >= c.RatioSamples && 100*s.errors >= c.ErrorPercent*s.calls:
		return ReasonErrorRatio
	case b.row >= c.Consecutive:
		return ReasonConsecutive
	}
	return ReasonNone
}

// regate lets healthy reports pass without the lock exactly while they can
// change nothing but a count: there is no row of bad calls to end, nobody to
// tell, and no rule that one more healthy call would bring to bear.
func (b *Breaker) regate() {
	gate := b.generation << gateBits
	if b.state == Closed {
		gate |= admitting
		if b.row == 0 && b.cfg.Hooks.Verdict == nil && b.assured() {
			gate |= quiet
		}
	}
	if gate != b.gate.Load() {
		b.gate.Store(gate)
	}
}

// assured says that no number of healthy calls can break a rule.
func (b *Breaker) assured() bool {
	if b.window.bad == (counts{}) {
		return true
	}
	s := b.window.sum()
	return s.calls >= max(b.cfg.MinSamples, b.cfg.RatioSamples) && b.broken(s) == ReasonNone
}

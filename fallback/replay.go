package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

const (
	retryMax  = time.Minute            // between two attempts of an item
	deadDelay = 10 * time.Second       // until a full dead letter store is tried again
	loadDelay = 500 * time.Millisecond // after the queue could not be read
	blamed    = time.Second            // until a trigger that can't be buried has its turn again

	throttledBad = 5 // every so many 429 in a row are one failure
)

// result is how a call ended, and what the breaker made of it.
type result struct {
	ok         bool
	cause      router.Cause
	cancelled  bool // by us: nothing is known of it
	retryAfter time.Duration
	text       string // of the error
	probe      bool
	verdict    breaker.Verdict
	outcome    Outcome
}

// fetched takes the queue's answer to a load. age is how long the item has
// been parked.
func (c *core) fetched(now time.Duration, t task, item *Item, age time.Duration, err error) task {
	s := t.s
	c.fetching[t.rank]--
	switch {
	case s.orphan:
	case err != nil:
		s.known = true // as good a guess as any: others need not wait for it
		s.notBefore, s.held = now+loadDelay, true
	case item == nil:
		// All that was acknowledged before the question is gone.
		c.addStored(s, int(s.acks-t.acks)-s.stored)
		s.forgetHead()
	default:
		c.keep(now, s, item, age)
	}
	c.end(now, s, s.demoted) // it need not queue up again to be called
	return task{}
}

// keep notes a slot's first item, and holds it in memory if it is among the
// next to be called.
func (c *core) keep(now time.Duration, s *slot, item *Item, age time.Duration) {
	if s.stored == 0 { // found, though not counted
		c.addStored(s, 1)
	}
	s.priority, s.known = item.Trigger.Priority, true
	s.expires = breaker.Never
	if c.cfg.MaxAge > 0 {
		s.expires = now + max(0, c.cfg.MaxAge-age)
	}
	if c.held() < c.cfg.Concurrency || c.state == breaker.HalfOpen {
		s.head = item
	}
}

func (c *core) addStored(s *slot, n int) {
	s.stored += n
	c.stored += n
}

// answered notes that the breaker has admitted or refused a call, or is not
// asked for it after all.
func (c *core) answered(t *task) {
	if t.asks {
		t.asks, c.asking = false, false
	}
}

// refused takes back a call that the breaker did not admit.
func (c *core) refused(now time.Duration, t task, why Reason) task {
	c.answered(&t)
	c.inFlight--
	c.ramp.Drop(t.pace)
	c.rate.giveBack()
	if why == ReasonProbeCap && c.probed == t.probed {
		c.capped = true // until one of those that are out has ended
	}
	if t.e == nil {
		c.end(now, t.s, true)
		return task{}
	}
	c.returned(now, t, why)
	return task{}
}

// returned parks a live trigger that was not delivered, with all that is
// behind it.
func (c *core) returned(now time.Duration, t task, why Reason) {
	s, e := t.s, t.e
	e.reason = why
	if !s.orphan {
		s.run.unshift(e)
		if s.state == live {
			c.lane++
		} else {
			c.outside += e.size
			c.outCount++
		}
		if s.state == live {
			rest := Reason("")
			if why != ReasonFailed {
				rest = why
			}
			c.divert(now, s, rest)
		}
	}
	c.end(now, s, true)
	c.hand()
}

// kind says what the breaker is told of a call. throttled is how many answers
// in a row have asked for fewer calls: a consumer that does is not sick, so
// long as it does not do it all the time; but as a probe it has not proved
// that it is well.
func kind(r result, throttled int) breaker.Kind {
	switch {
	case r.ok:
		return breaker.OK
	case r.cancelled:
		return breaker.Cancelled
	}
	switch r.cause {
	case router.Rejected:
		return breaker.OK
	case router.Unsent, router.Gone:
		return breaker.Ignored
	case router.Throttled:
		if throttled%throttledBad != 0 && !r.probe {
			return breaker.Ignored
		}
	}
	return breaker.Failed
}

// called takes the outcome of a call. The follow-up, if any, is for the same
// worker: the slot stays with it.
func (c *core) called(now time.Duration, t task, r result) task {
	c.inFlight--
	c.served = true
	t.s.tried++
	if r.probe {
		c.capped = false
		c.probed++
	}
	if r.cause == router.Throttled && !r.probe {
		c.ramp.Throttle(now, t.pace, c.ordinary())
		c.nudge = true
	}
	c.ramp.Done(now, t.pace)
	s := t.s
	switch {
	case r.ok && t.e != nil:
		c.settle(t.e)
		return c.delivered(now, s)
	case r.ok:
		return c.passed(t)
	case r.cancelled:
		return c.missed(now, t, ReasonShutdown)
	}
	s.lastError = r.text
	switch r.cause {
	case router.Rejected:
		return c.giveUp(t, DeadRejected)
	case router.Unsent:
		return c.giveUp(t, DeadUnsent)
	case router.Gone:
		c.disable(now)
		return c.missed(now, t, ReasonDisabled)
	}
	return c.failed(now, t, r)
}

// failed is the outcome of a call that another attempt may better.
func (c *core) failed(now time.Duration, t task, r result) task {
	s := t.s
	s.held = false
	switch {
	case r.probe:
		// Its turn as a probe says nothing about the trigger: no delay and no
		// attempt, but others first.
		s.demoted = true
	case r.cause == router.Throttled:
		// The consumer judged our pace, not the trigger: no attempt either.
		s.notBefore = now + backoff(s.tried)
	default:
		s.attempts++
		if s.attempts >= c.cfg.MaxAttempts {
			return c.giveUp(t, DeadMaxAttempts)
		}
		s.notBefore = now + backoff(s.attempts)
	}
	if r.retryAfter > 0 && !r.probe {
		s.notBefore = max(s.notBefore, now+min(r.retryAfter, c.cfg.MaxRetryAfter))
		s.held = true
	}
	return c.missed(now, t, ReasonFailed)
}

// backoff is how long a trigger waits after its nth call.
func backoff(n int) time.Duration {
	return min(time.Second<<min(n-1, 10), retryMax)
}

// missed puts a trigger back that was not delivered.
func (c *core) missed(now time.Duration, t task, why Reason) task {
	if t.e != nil {
		c.returned(now, t, why)
		return task{}
	}
	t.s.head = nil
	c.end(now, t.s, true)
	return task{}
}

// giveUp makes a dead letter of the trigger.
func (c *core) giveUp(t task, reason DeadReason) task {
	t.kind, t.reason = bury, reason
	return t
}

// buried takes the answer to a bury.
func (c *core) buried(now time.Duration, t task, full bool, err error) task {
	c.deadFull = full
	s := t.s
	switch {
	case err != nil:
		// It stays parked, or is parked now, and is buried at its next turn.
		s.doom, s.died = t.reason, t.died
		s.notBefore, s.held = now+blamed, true
		if full {
			s.notBefore = now + deadDelay
		}
		return c.missed(now, t, ReasonFailed)
	case t.e != nil:
		c.settle(t.e)
		return c.delivered(now, s)
	}
	return c.passed(t)
}

// delivered moves on from a live trigger.
func (c *core) delivered(now time.Duration, s *slot) task {
	s.attempts, s.tried, s.lastError = 0, 0, ""
	c.end(now, s, false)
	return task{}
}

// passed moves on from a slot's first item: it is settled, and what is left
// is to delete it.
func (c *core) passed(t task) task {
	s := t.s
	s.after = t.item.Seq
	s.forgetHead()
	// While probing the next item's own priority counts; in a long replay the
	// last one's is near enough, and saves a look ahead.
	s.priority, s.known = t.item.Trigger.Priority, c.state == breaker.Closed
	if s.stored > 0 && !s.orphan {
		c.addStored(s, -1)
	}
	t.kind = erase
	return t
}

// erased takes the answer to the deletion of a settled item. If it failed the
// delivery stands: the item is passed over from now on, and deleted later.
func (c *core) erased(now time.Duration, t task, err error) task {
	if err != nil && !t.s.orphan {
		t.s.left++
		c.leftover = append(c.leftover, leftover{t.s, t.item.Seq})
	}
	c.end(now, t.s, false)
	return task{}
}

// disable stops all calls: the consumer wants none, ever.
func (c *core) disable(now time.Duration) {
	c.disabled = true
	c.divertAll(now, ReasonDisabled)
}

package breaker

import (
	"fmt"
	"time"
)

// Hooks tell what a breaker does. Either may be nil. They are called outside
// the breaker's lock, in the order in which things happened, one at a time,
// by a goroutine that is inside one of the breaker's methods (not necessarily
// the method that caused it, if several run at once). A hook may call the
// breaker. A panic in a hook is caught and counted.
type Hooks struct {
	// Transition is told each change of state.
	Transition func(Transition)
	// Verdict is told each judgement and each report that judged nothing. A
	// call that passes P99 in flight is told as slow at that moment; its
	// report is told only if it adds something: a failure, or that it was
	// stale, repeated, ignored or cancelled.
	Verdict func(probe bool, v Verdict)
}

// Transition is a change of a breaker's state.
type Transition struct {
	From, To   State
	At         time.Duration // when it happened, which may lie before it was noticed
	Generation uint64        // the one that begins
	Reason     Reason
	Text       string // the reason in words: "P99 212 ms over 50 ms on 143 calls"

	// Of the open window that begins or has begun last: its rung of the
	// ladder (from 0), its length and its end.
	Rung          int
	Window, Until time.Duration
}

// cause is what a transition's words are made of.
type cause struct {
	reason   Reason
	kind     Kind          // how the probe ended
	measured time.Duration // a latency
	limit    time.Duration // P99
	window   time.Duration // of the open window
	counts   counts        // of the sliding window
	calls    int           // in the row
	alive    bool          // alive but slow
}

// String says it in words.
func (c cause) String() string {
	switch c.reason {
	case ReasonP99:
		if c.measured.Round(time.Millisecond) <= c.limit.Round(time.Millisecond) {
			return fmt.Sprintf("P99 over %s on %d calls", millis(c.limit), c.counts.calls)
		}
		return fmt.Sprintf("P99 %s over %s on %d calls", millis(c.measured), millis(c.limit), c.counts.calls)
	case ReasonSlowRatio:
		return fmt.Sprintf("%d of %d calls over %s", c.counts.over, c.counts.calls, millis(c.limit))
	case ReasonErrorRatio:
		return fmt.Sprintf("%d of %d calls failed", min(c.counts.errors, c.counts.calls), c.counts.calls)
	case ReasonConsecutive:
		return fmt.Sprintf("%d bad calls in a row", c.calls)
	case ReasonProbeFailed:
		if c.kind == Cancelled {
			return "a probe was cancelled"
		}
		return "a probe failed"
	case ReasonProbeSlow:
		if c.alive {
			return fmt.Sprintf("a probe took over %s; alive but slow: P50 %s", millis(c.limit), millis(c.measured))
		}
		return fmt.Sprintf("a probe took over %s", millis(c.limit))
	case ReasonForced:
		return fmt.Sprintf("an operator opened it for %v", c.window.Round(time.Millisecond))
	case ReasonWindowEnded:
		return fmt.Sprintf("the open window of %v has ended", c.window.Round(time.Millisecond))
	case ReasonHint:
		return "the health check passes"
	case ReasonProbeNow:
		return "an operator asked for a probe"
	case ReasonProbesHealthy:
		return fmt.Sprintf("%d healthy probes in a row within %s", c.calls, millis(c.limit))
	}
	return ""
}

// millis writes a latency as "212 ms", with as many decimals as it needs.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 10 || d%time.Millisecond == 0:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.2g ms", ms)
	}
}

// notices queues what the hooks are to be told.
type notices struct {
	queue   []notice
	told    int  // of the queue
	telling bool // a goroutine is at it
}

// notice is a transition or a verdict.
type notice struct {
	verdict   Verdict
	probe     bool
	isVerdict bool
	change    Transition
	cause     cause
}

func (n *notices) waiting() bool { return n.told < len(n.queue) }

// take returns the first notice that has not been told.
func (n *notices) take() notice {
	first := n.queue[n.told]
	if n.told++; n.told == len(n.queue) {
		n.queue, n.told = n.queue[:0], 0
	}
	return first
}

// tell queues a verdict for the hook and returns it.
func (b *Breaker) tell(probe bool, v Verdict) Verdict {
	if b.cfg.Hooks.Verdict != nil {
		b.notices.queue = append(b.notices.queue, notice{verdict: v, probe: probe, isVerdict: true})
	}
	return v
}

// unlockAndTell gives up the lock and calls the hooks for what is queued,
// unless another goroutine is at it, or this one further up its stack.
func (b *Breaker) unlockAndTell() {
	if b.notices.telling {
		b.mu.Unlock()
		return
	}
	for b.notices.waiting() {
		n := b.notices.take()
		b.notices.telling = true
		b.mu.Unlock()
		b.callHook(&n)
		b.mu.Lock()
		b.notices.telling = false
	}
	b.mu.Unlock()
}

// callHook calls a hook. A panic in it harms nothing, and after a Goexit the
// next caller tells the rest.
func (b *Breaker) callHook(n *notice) {
	returned := false
	defer func() {
		if returned {
			return
		}
		recover()
		b.mu.Lock()
		b.counters.HookPanics++
		b.notices.telling = false
		b.mu.Unlock()
	}()
	if n.isVerdict {
		b.cfg.Hooks.Verdict(n.probe, n.verdict)
	} else {
		n.change.Text = n.cause.String()
		b.cfg.Hooks.Transition(n.change)
	}
	returned = true
}

package breaker_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// TestB1_ProbeNeverReports: a hung probe fails at P99, and its lease frees
// its place; half-open always ends.
func TestB1_ProbeNeverReports(t *testing.T) {
	r := newRig(t, breaker.Config{Base: 300 * ms})
	r.trip()
	r.wait()
	r.admit()
	r.admit()
	began := r.now
	r.now = r.b.Poll(r.now)
	equal(t, "half-open waits for a probe until", r.now, began+50*ms+1)
	r.b.Poll(r.now)
	r.want(breaker.Open)
	equal(t, "reason", r.last().Reason, breaker.ReasonProbeSlow)

	r.wait() // 600 ms; the lease is 1.2 s
	if _, err := r.b.Admit(r.now); !errors.Is(err, breaker.ErrProbeCap) {
		t.Fatalf("with both places held by hung probes: %v", err)
	}
	equal(t, "next", r.b.Poll(r.now), began+1200*ms)
	r.now = began + 1200*ms
	equal(t, "probes in flight after their lease", r.snapshot().ProbesInFlight, 0)
	r.heal()
	equal(t, "expired permits", r.snapshot().Counters.Expired, 2)
}

// TestB2_EveryPathGivesBackOnce: each way in which a probe can end frees its
// place, exactly once.
func TestB2_EveryPathGivesBackOnce(t *testing.T) {
	for _, kind := range []breaker.Kind{breaker.OK, breaker.Failed, breaker.Ignored, breaker.Cancelled} {
		for _, latency := range []time.Duration{ms, 51 * ms, 2 * sec} {
			r := newRig(t, breaker.Config{})
			r.trip()
			r.wait()
			p := r.admit()
			equal(t, "probe", p.Probe(), true)
			r.now += latency
			r.report(p, kind)
			for range 3 {
				v := r.report(p, kind)
				if v != breaker.VerdictRepeated && latency < 2*sec {
					t.Errorf("%v after %v, again: %v", kind, latency, v)
				}
			}
			s := r.snapshot()
			if s.ProbesInFlight != 0 || s.InFlight != 0 {
				t.Errorf("%v after %v: %d probes of %d permits are out", kind, latency, s.ProbesInFlight, s.InFlight)
			}
			if s.State == breaker.Open {
				r.wait()
			}
			r.admit()
			r.admit()
			if _, err := r.b.Admit(r.now); !errors.Is(err, breaker.ErrProbeCap) {
				t.Errorf("%v after %v: a third probe: %v", kind, latency, err)
			}
		}
	}
}

func TestB2_IgnoredProbeDecidesNothing(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.wait()
	for range 4 {
		r.call(ms, breaker.OK)
		equal(t, "verdict", r.call(ms, breaker.Ignored), breaker.VerdictIgnored)
	}
	equal(t, "successes", r.snapshot().Successes, 4)
	r.call(ms, breaker.OK)
	r.want(breaker.Closed)
}

// TestB4_StaleReports: a report of an older generation decides nothing.
func TestB4_StaleReports(t *testing.T) {
	r := newRig(t, breaker.Config{})
	var old []breaker.Permit
	for range 40 {
		old = append(old, r.admit())
	}
	r.trip()
	until := r.snapshot().Until
	for _, p := range old[:10] {
		r.now += ms
		equal(t, "a late failure", r.report(p, breaker.Failed), breaker.VerdictStale)
	}
	equal(t, "deadline", r.snapshot().Until, until)
	r.now = until - 850*ms
	r.wait()
	for _, p := range old[10:20] {
		equal(t, "a late success", r.report(p, breaker.OK), breaker.VerdictStale)
	}
	r.want(breaker.HalfOpen)
	equal(t, "successes", r.snapshot().Successes, 0)
	for _, p := range old[20:30] {
		equal(t, "a late failure while half-open", r.report(p, breaker.Failed), breaker.VerdictStale)
	}
	r.want(breaker.HalfOpen)
	r.heal()
	for _, p := range old[30:] {
		equal(t, "a late failure after the close", r.report(p, breaker.Failed), breaker.VerdictStale)
	}
	equal(t, "calls", r.snapshot().Calls, 0)
	equal(t, "counted", r.snapshot().Counters.Stale, 40)
}

// TestB5_TwoProbesFailAtOnce: one reopening, one rung.
func TestB5_TwoProbesFailAtOnce(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.wait()
	p, q := r.admit(), r.admit()
	r.now += ms
	equal(t, "first", r.report(p, breaker.Failed), breaker.VerdictFailed)
	equal(t, "second", r.report(q, breaker.Failed), breaker.VerdictStale)
	s := r.snapshot()
	equal(t, "rung", s.Rung, 1)
	equal(t, "window", s.Window, 2*sec)
	equal(t, "reopenings", s.Counters.Reopens, 1)
}

// TestB6_FirstFailureWins: a success beside a failure decides nothing.
func TestB6_FirstFailureWins(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.wait()
	for range 4 {
		r.call(ms, breaker.OK)
	}
	p, q := r.admit(), r.admit()
	r.now += ms
	r.report(p, breaker.Failed)
	equal(t, "the fifth success, too late", r.report(q, breaker.OK), breaker.VerdictStale)
	r.want(breaker.Open)
}

// TestB13_NeverClosedByTime: without probes it stays half-open for ever.
func TestB13_NeverClosedByTime(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.wait()
	equal(t, "next", r.b.Poll(r.now), breaker.Never)
	for range 1000 {
		r.now += time.Hour
		r.want(breaker.HalfOpen)
	}
	for i := range 5 {
		r.want(breaker.HalfOpen)
		equal(t, "successes", r.snapshot().Successes, i)
		r.call(50*ms, breaker.OK)
	}
	r.want(breaker.Closed)
	equal(t, "text", r.last().Text, "5 healthy probes in a row within 50 ms")
}

// TestB14_LadderClimbsUntilSettled: neither a healthy probe nor a close alone
// resets it.
func TestB14_LadderClimbsUntilSettled(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	for _, want := range []time.Duration{2 * sec, 4 * sec} {
		r.wait()
		r.call(ms, breaker.OK)
		r.call(ms, breaker.Failed)
		equal(t, "window", r.last().Window, want)
	}
	r.wait()
	r.heal()
	r.now += 9 * sec
	r.trip()
	equal(t, "window of a trip within settle", r.last().Window, 8*sec)
	r.wait()
	r.heal()
	r.now += 10*sec - 5*ms
	r.trip() // the fifth failure is at exactly settle
	equal(t, "window of a trip after settle", r.last().Window, sec)
	equal(t, "rung", r.last().Rung, 0)
}

// TestB15_Ladder: 1, 2, 4, 8, 16, 30, 30 ..., for ever, with jitter at the cap.
func TestB15_Ladder(t *testing.T) {
	for _, test := range []struct{ rand, factor float64 }{{0.5, 1}, {0, 0.8}, {math.Nextafter(1, 0), 1.2}} {
		r := newRig(t, breaker.Config{Rand: func() float64 { return test.rand }})
		r.trip()
		for rung := range 5000 {
			want := min(math.Pow(2, float64(rung)), 30) * test.factor
			if got := r.last().Window.Seconds(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("rung %d lasts %v s, want %v", rung, got, want)
			}
			equal(t, "rung", r.last().Rung, rung)
			r.wait()
			r.call(ms, breaker.Failed)
		}
	}
}

// TestB16_TimeNeverFalls: a time before the newest counts as the newest.
func TestB16_TimeNeverFalls(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.now = 100 * sec
	r.trip()
	until := r.snapshot().Until
	r.b.Poll(5 * sec)
	r.now = 90 * sec
	_, err := r.b.Admit(r.now)
	if open, ok := errors.AsType[*breaker.OpenError](err); !ok || open.Until != until {
		t.Fatalf("Admit in the past: %v", err)
	}
	r.now = until
	r.b.Poll(r.now)
	r.now = 0
	p := r.admit()
	equal(t, "a probe reported in the past", r.report(p, breaker.OK), breaker.VerdictHealthy)
	r.want(breaker.HalfOpen)
}

// TestB16_AnyOrigin: negative times are as good as others, and idling for a
// year harms nothing.
func TestB16_AnyOrigin(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.now = -1000 * time.Hour
	for range 3 {
		hung := r.admit()
		r.now += 365 * 24 * time.Hour
		equal(t, "a report after a year", r.report(hung, breaker.OK), breaker.VerdictStale)
		s := r.snapshot()
		equal(t, "permits out", s.InFlight, 0)
		r.call(ms, breaker.OK)
		equal(t, "calls", r.snapshot().Calls, 1)
	}
}

// TestB18_SlowSuccessIsNoSuccess: a probe must be within P99.
func TestB18_SlowSuccessIsNoSuccess(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.wait()
	for range 4 {
		r.call(50*ms, breaker.OK)
	}
	equal(t, "a slow success", r.call(50*ms+1, breaker.OK), breaker.VerdictStale)
	r.want(breaker.Open)
	equal(t, "reason", r.last().Reason, breaker.ReasonProbeSlow)
	equal(t, "at", r.last().At, r.now)
	equal(t, "text", r.last().Text, "a probe took over 50 ms")
}

// TestAliveButSlow: three reopenings in a row whose probes all answered, but
// too slowly, name the limit as the likely culprit.
func TestAliveButSlow(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	slow := func() {
		r.wait()
		p, q := r.admit(), r.admit()
		r.now += 51 * ms
		r.b.Poll(r.now)
		r.now += 29 * ms
		r.report(p, breaker.OK)
		r.report(q, breaker.OK)
	}
	slow()
	slow()
	equal(t, "after two", r.snapshot().AliveButSlow, false)
	slow()
	s := r.snapshot()
	equal(t, "after three", s.AliveButSlow, true)
	equal(t, "P50", s.SlowP50, 80*ms)
	slow()
	equal(t, "text", r.last().Text, "a probe took over 50 ms; alive but slow: P50 80 ms")
	r.wait()
	r.call(ms, breaker.Failed)
	equal(t, "after a failure", r.snapshot().AliveButSlow, false)
}

// TestRetryAfter: the consumer's wish lengthens the window, up to max, and a
// late one doesn't.
func TestRetryAfter(t *testing.T) {
	for _, test := range []struct{ asked, want time.Duration }{
		{0, sec}, {500 * ms, sec}, {7 * sec, 7 * sec}, {time.Hour, 30 * sec}, {math.MaxInt64, sec}, {-sec, sec},
	} {
		r := newRig(t, breaker.Config{})
		late := r.admit()
		for range 5 {
			r.admit().Report(r.now, breaker.Outcome{Kind: breaker.Failed, RetryAfter: test.asked})
		}
		equal(t, "window", r.last().Window, test.want)
		late.Report(r.now, breaker.Outcome{Kind: breaker.Failed, RetryAfter: 20 * sec})
		equal(t, "after a late one", r.snapshot().Until, r.now+test.want)
		r.wait()
		r.admit().Report(r.now, breaker.Outcome{Kind: breaker.Failed, RetryAfter: 9 * sec})
		after := 9 * sec
		if test.asked == time.Hour {
			after = 30 * sec // it still stands
		}
		equal(t, "after a probe", r.last().Window, after)
	}
}

// TestHint: outside evidence ends a window early, never before base, and is
// not believed after it was wrong.
func TestHint(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.trip()
	r.now += 300 * ms
	r.b.Hint(r.now)
	equal(t, "a hint before base", r.snapshot().Until, r.last().At+sec)
	for range 3 { // climb to 8 s
		r.wait()
		r.call(ms, breaker.Failed)
	}
	opened := r.now
	r.now += 200 * ms
	r.b.Hint(r.now)
	equal(t, "shortened to base", r.snapshot().Until, opened+sec)
	r.wait()
	equal(t, "reason", r.last().Reason, breaker.ReasonHint)
	r.call(ms, breaker.Failed) // it was wrong
	r.now += 2 * sec
	r.b.Hint(r.now)
	equal(t, "after a wrong hint", r.snapshot().Until, r.last().Until)
	equal(t, "trust", r.snapshot().HintsTrusted, false)
	r.wait()
	r.heal()
	r.now += 10 * sec
	equal(t, "trust after a clean close", r.snapshot().HintsTrusted, true)

	r.trip()
	r.wait()
	r.call(ms, breaker.Failed)
	r.now += sec
	r.b.Hint(r.now)
	r.want(breaker.HalfOpen)
	r.heal()
	r.trip() // within settle: wrong as well
	equal(t, "trust after a trip within settle", r.snapshot().HintsTrusted, false)
}

func TestHintRespectsRetryAfterAndOperator(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 5 {
		r.admit().Report(r.now, breaker.Outcome{Kind: breaker.Failed, RetryAfter: 20 * sec})
	}
	r.now += 2 * sec
	r.b.Hint(r.now)
	equal(t, "the consumer's wish outranks a hint", r.snapshot().Until, 20*sec)
	r.b.ProbeNow(r.now)
	r.want(breaker.HalfOpen)
	equal(t, "reason", r.last().Reason, breaker.ReasonProbeNow)
	r.b.ForceOpen(r.now, time.Minute)
	r.now += 30 * sec
	r.b.Hint(r.now)
	r.want(breaker.Open)
	equal(t, "text", r.last().Text, "an operator opened it for 1m0s")
	r.now += 30 * sec
	r.want(breaker.HalfOpen)
	equal(t, "no rung", r.last().Rung, 0)
}

func TestForceOpenAndProbeNow(t *testing.T) {
	r := newRig(t, breaker.Config{})
	r.b.ProbeNow(r.now)
	r.b.Hint(r.now)
	r.want(breaker.Closed)
	p := r.admit()
	r.b.ForceOpen(r.now, 0)
	equal(t, "by default for max", r.snapshot().Until, 30*sec)
	equal(t, "a call from before", r.report(p, breaker.OK), breaker.VerdictStale)
	r.now += 100 * ms
	r.b.ProbeNow(r.now)
	equal(t, "not before base", r.snapshot().Until, sec)
	r.wait()
	q := r.admit()
	r.b.ForceOpen(r.now, 100*time.Hour)
	equal(t, "at most a day", r.snapshot().Until, r.now+24*time.Hour)
	equal(t, "a probe from before", r.report(q, breaker.Failed), breaker.VerdictStale)
	r.b.ForceOpen(r.now, 2*sec)
	equal(t, "replaced", r.snapshot().Until, r.now+2*sec)
	r.wait()
	r.call(ms, breaker.Failed)
	equal(t, "the first rung", r.last().Window, sec)
}

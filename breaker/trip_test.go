package breaker_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// TestB7_SlowInFlight: calls that hang are seen when they pass P99, once, and
// their later reports add only errors.
func TestB7_SlowInFlight(t *testing.T) {
	r := newRig(t, breaker.Config{Consecutive: 100})
	var hung []breaker.Permit
	for range 12 {
		hung = append(hung, r.admit())
	}
	next := r.b.Poll(r.now)
	equal(t, "Poll wants to be called", next, 50*ms+1)
	equal(t, "slow at P99", countOver(r, 50*ms), 0)
	r.b.Poll(50*ms + 1)
	equal(t, "state with ten hung calls", r.b.State(), breaker.Open)
	equal(t, "when", r.last().At, 50*ms+1)
	equal(t, "why", r.last().Reason, breaker.ReasonSlowRatio)
	r.now = 200 * ms
	for _, p := range hung {
		equal(t, "report of a hung call", r.report(p, breaker.Failed), breaker.VerdictStale)
	}
}

func countOver(r *rig, at time.Duration) int {
	r.now = at
	return r.snapshot().Over
}

func TestB7_OverdueCountsOnce(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 2 {
		p := r.admit()
		r.now += 60 * ms
		r.b.Poll(r.now)
		equal(t, "report of an overdue call", r.report(p, breaker.OK), breaker.VerdictSlow)
	}
	p := r.admit()
	r.now += 200 * ms
	equal(t, "report of an overdue failure", r.report(p, breaker.Failed), breaker.VerdictFailed)
	s := r.snapshot()
	equal(t, "calls", s.Calls, 3)
	equal(t, "over", s.Over, 3)
	equal(t, "errors", s.Errors, 1)
	equal(t, "bad row", s.BadRow, 3)
}

// TestB7_SameHoweverOftenPolled: what time decides happens at its own moment.
func TestB7_SameHoweverOftenPolled(t *testing.T) {
	run := func(poll bool) []breaker.Transition {
		rng := rand.New(rand.NewPCG(1, 2))
		r := newRig(t, breaker.Config{Rand: rand.New(rand.NewPCG(3, 4)).Float64})
		var out []breaker.Permit
		for range 60_000 {
			step := time.Duration(rng.IntN(int(10 * ms)))
			if poll {
				for end := r.now + step; r.now < end; r.now = min(end, r.now+ms/4) {
					r.b.Poll(r.now)
				}
			} else {
				r.now += step
			}
			if p, err := r.b.Admit(r.now); err == nil {
				out = append(out, p)
			}
			if len(out) > rng.IntN(6) {
				i := rng.IntN(len(out))
				r.report(out[i], breaker.Kind(rng.IntN(8)/5))
				out = slices.Delete(out, i, i+1)
			}
		}
		return r.transitions
	}
	if polled, not := run(true), run(false); !slices.Equal(polled, not) {
		t.Fatalf("%d transitions when polled, %d when not, or they differ", len(polled), len(not))
	} else if len(not) < 20 {
		t.Fatalf("only %d transitions", len(not))
	}
}

// TestB8_QuietConsumer: five bad calls in a row trip it at any rate.
func TestB8_QuietConsumer(t *testing.T) {
	for _, every := range []time.Duration{sec, time.Minute, time.Hour} {
		r := newRig(t, breaker.Config{})
		for i := range 5 {
			r.want(breaker.Closed)
			kind := breaker.Failed
			if i%2 == 0 {
				kind = breaker.OK // but slow
			}
			r.call(51*ms, kind)
			r.now += every
		}
		equal(t, "reason", r.last().Reason, breaker.ReasonConsecutive)
		equal(t, "text", r.last().Text, "5 bad calls in a row")
	}
}

func TestB8_OnePauseIsOneBadCall(t *testing.T) {
	r := newRig(t, breaker.Config{})
	var paused []breaker.Permit
	for range 6 {
		paused = append(paused, r.admit())
	}
	r.now += 190 * ms
	for _, p := range paused {
		r.report(p, breaker.Failed)
	}
	equal(t, "bad row after a pause", r.snapshot().BadRow, 1)
	r.call(ms, breaker.Failed)
	equal(t, "bad row after one more", r.snapshot().BadRow, 2)
	r.now += 10 * sec // what the window held is gone
	r.call(ms, breaker.OK)
	equal(t, "bad row after a good one", r.snapshot().BadRow, 0)
	r.want(breaker.Closed)
}

// TestB9_OneBlip: two slow calls never trip it, whatever the share; the
// comparison has no rounding.
func TestB9_OneBlip(t *testing.T) {
	tests := []struct {
		healthy, slow int
		slowFirst     bool
		want          breaker.State
	}{
		{98, 2, false, breaker.Closed}, // 2 %, but fewer than three
		{98, 2, true, breaker.Closed},
		{99, 1, false, breaker.Closed}, // exactly 1 %
		{97, 3, false, breaker.Open},   // 3 %
		{97, 3, true, breaker.Open},    // the last healthy one completes the sample
		{96, 3, false, breaker.Closed}, // 99 calls are too few
		{96, 3, true, breaker.Closed},
		{297, 3, false, breaker.Closed}, // exactly 1 %
		{296, 3, false, breaker.Open},   // 1.003 %
		{6, 5, false, breaker.Closed},
		{5, 5, false, breaker.Open}, // half of ten
		{5, 5, true, breaker.Open},
		{4, 5, true, breaker.Closed},
	}
	for _, test := range tests {
		r := newRig(t, breaker.Config{Consecutive: 100})
		healthy := func() {
			for range test.healthy {
				r.want(breaker.Closed)
				r.call(ms, breaker.OK)
			}
		}
		if !test.slowFirst {
			healthy()
		}
		var slow []breaker.Permit
		for range test.slow {
			slow = append(slow, r.admit())
		}
		r.now += 51 * ms
		for _, p := range slow {
			r.report(p, breaker.OK)
		}
		if test.slowFirst {
			healthy()
		}
		if got := r.b.State(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestB9_HundredPercentIsExact(t *testing.T) {
	r := newRig(t, breaker.Config{Consecutive: 1000, ErrorPercent: 100, SlowPercent: 100})
	r.call(ms, breaker.OK)
	for range 500 {
		r.call(ms, breaker.Failed)
		r.want(breaker.Closed)
	}
	r.now += 10 * sec // the good one leaves the window; the bad ones too
	for range 10 {
		r.want(breaker.Closed)
		r.call(ms, breaker.Failed)
	}
	equal(t, "text", r.last().Text, "10 of 10 calls failed")
}

// TestB10_RefusalsAreNoSamples: what was not admitted, or ignored, counts
// nowhere.
func TestB10_RefusalsAreNoSamples(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 1000 {
		r.call(ms, breaker.Ignored)
	}
	equal(t, "calls after rejections of our own", r.snapshot().Calls, 0)
	r.trip()
	before := r.snapshot()
	for range 1000 {
		if _, err := r.b.Admit(r.now); !errors.Is(err, breaker.ErrOpen) {
			t.Fatalf("Admit while open: %v", err)
		}
	}
	equal(t, "snapshot after refusals", r.snapshot(), before)
	r.wait()
	r.admit()
	r.admit()
	for range 1000 {
		if _, err := r.b.Admit(r.now); !errors.Is(err, breaker.ErrProbeCap) || errors.Is(err, breaker.ErrOpen) {
			t.Fatalf("Admit with all probes out: %v", err)
		}
	}
}

// TestB11_CallerCancels: neutral while closed, a failure as a probe.
func TestB11_CallerCancels(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 20 {
		equal(t, "cancelled while closed", r.call(ms, breaker.Cancelled), breaker.VerdictCancelled)
	}
	equal(t, "calls", r.snapshot().Calls, 0)
	r.trip()
	r.wait()
	equal(t, "cancelled probe", r.call(ms, breaker.Cancelled), breaker.VerdictFailed)
	r.want(breaker.Open)
	equal(t, "text", r.last().Text, "a probe was cancelled")
}

// TestB12_EmptyOnClose: what was seen before the trip says nothing after.
func TestB12_EmptyOnClose(t *testing.T) {
	r := newRig(t, breaker.Config{Base: 10 * ms})
	for range 400 {
		r.call(ms, breaker.OK)
	}
	r.trip()
	r.wait()
	r.heal()
	s := r.snapshot()
	equal(t, "calls", s.Calls, 0)
	equal(t, "bad row", s.BadRow, 0)
	for range 4 {
		r.call(ms, breaker.Failed)
	}
	r.want(breaker.Closed)
}

// TestTripTextIsMeasured: the words name the figures that tripped it.
func TestTripTextIsMeasured(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 140 {
		r.call(5*ms, breaker.OK)
	}
	var slow []breaker.Permit
	for range 3 {
		slow = append(slow, r.admit())
	}
	r.now += 45 * ms
	r.report(slow[0], breaker.OK)
	r.now += 4 * ms
	r.want(breaker.Closed)
	p := r.admit()
	r.now += 170 * ms
	r.report(p, breaker.OK) // the third over the limit
	tr := r.last()
	equal(t, "reason", tr.Reason, breaker.ReasonP99)
	if !strings.HasPrefix(tr.Text, "P99 ") || !strings.HasSuffix(tr.Text, " over 50 ms on 144 calls") {
		t.Errorf("text %q", tr.Text)
	}
	if s := r.snapshot(); s.HealthyP50 != 0 {
		t.Errorf("a healthy P50 of %v before the first window has passed", s.HealthyP50)
	}
}

// TestHealthyMedianIsKept: the last healthy window's median survives a trip.
func TestHealthyMedianIsKept(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 400 {
		r.call(5*ms, breaker.OK)
	}
	r.trip()
	if got := r.b.Ordinary(); got < 46*ms/10 || got > 54*ms/10 {
		t.Errorf("ordinary latency %v, want about 5 ms", got)
	}
	quiet := newRig(t, breaker.Config{})
	quiet.trip()
	quiet.wait()
	quiet.heal()
	equal(t, "without a healthy window, the fastest probe", quiet.b.Ordinary(), ms)
}

// TestWindowSlides: a sample counts for nine to ten seconds.
func TestWindowSlides(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 4 {
		r.call(ms, breaker.Failed)
	}
	r.now = 9*sec + 900*ms
	equal(t, "errors in the window", r.snapshot().Errors, 4)
	r.now = 10*sec + 1
	equal(t, "errors after it", r.snapshot().Errors, 0)
	equal(t, "the row is not windowed", r.snapshot().BadRow, 4)
}

// TestRuleAppliesAsTheWindowSlides: healthy calls that leave the window can
// bring a rule to bear; the next call, even a healthy one, then trips it.
func TestRuleAppliesAsTheWindowSlides(t *testing.T) {
	r := newRig(t, breaker.Config{})
	for range 300 {
		r.call(ms, breaker.OK)
	}
	r.now = 5 * sec
	for range 100 {
		r.call(ms, breaker.OK)
	}
	for range 3 {
		r.call(60*ms, breaker.OK)
		r.call(ms, breaker.OK)
	}
	r.now = 9 * sec
	r.call(ms, breaker.OK)
	r.want(breaker.Closed) // 3 of 407
	r.now = 10*sec + 1
	r.want(breaker.Closed) // 3 of 107, but nothing new to judge
	r.call(ms, breaker.OK)
	r.want(breaker.Open)
	equal(t, "reason", r.last().Reason, breaker.ReasonP99)
}

// TestNothingNewTripsNothing: the late report of a slow call says nothing that
// was not judged when it passed P99. So it doesn't trip, even when a rule has
// come to bear since, as the window slid; the next call that is judged does.
func TestNothingNewTripsNothing(t *testing.T) {
	r := newRig(t, breaker.Config{Timeout: 20 * sec, RatioSamples: 4})
	for range 30 {
		r.call(ms, breaker.OK)
	}
	r.now = 5 * sec
	slow := r.admit()
	failed := []breaker.Permit{r.admit(), r.admit(), r.admit()}
	for range 3 {
		r.call(ms, breaker.OK)
	}
	r.now += 60 * ms // the four pass P99: one row
	for _, p := range failed {
		r.report(p, breaker.Failed)
	}
	r.want(breaker.Closed)
	r.now = 10*sec + 50*ms
	equal(t, "the calls that are left", r.snapshot().Calls, 7)
	equal(t, "the report of the slow call", r.report(slow, breaker.OK), breaker.VerdictSlow)
	r.want(breaker.Closed)
	r.call(ms, breaker.OK)
	r.want(breaker.Open)
	equal(t, "reason", r.last().Reason, breaker.ReasonSlowRatio)
}

package breaker_test

import (
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// rig drives a breaker in virtual time and keeps what its hooks tell.
type rig struct {
	t           testing.TB
	b           *breaker.Breaker
	now         time.Duration
	transitions []breaker.Transition
}

// newRig returns a rig around a breaker without jitter, unless c has its own.
func newRig(t testing.TB, c breaker.Config) *rig {
	r := &rig{t: t}
	if c.Rand == nil {
		c.Rand = func() float64 { return 0.5 }
	}
	c.Hooks.Transition = func(tr breaker.Transition) { r.transitions = append(r.transitions, tr) }
	r.b = breaker.New(c)
	return r
}

func (r *rig) admit() breaker.Permit {
	r.t.Helper()
	p, err := r.b.Admit(r.now)
	if err != nil {
		r.t.Fatalf("at %v: Admit: %v", r.now, err)
	}
	return p
}

func (r *rig) report(p breaker.Permit, kind breaker.Kind) breaker.Verdict {
	return p.Report(r.now, breaker.Outcome{Kind: kind})
}

// call makes a call of that latency.
func (r *rig) call(latency time.Duration, kind breaker.Kind) breaker.Verdict {
	r.t.Helper()
	p := r.admit()
	r.now += latency
	return r.report(p, kind)
}

// trip opens a closed breaker with five failures.
func (r *rig) trip() {
	r.t.Helper()
	r.want(breaker.Closed)
	for range r.b.Config().Consecutive {
		r.call(ms, breaker.Failed)
	}
	r.want(breaker.Open)
}

// wait lets the open window end.
func (r *rig) wait() {
	r.t.Helper()
	r.want(breaker.Open)
	r.now = r.snapshot().Until
	r.b.Poll(r.now)
	r.want(breaker.HalfOpen)
}

// heal closes a half-open breaker with healthy probes.
func (r *rig) heal() {
	r.t.Helper()
	for range r.b.Config().Successes {
		if v := r.call(ms, breaker.OK); v != breaker.VerdictHealthy {
			r.t.Fatalf("a fast probe is %v", v)
		}
	}
	r.want(breaker.Closed)
}

func (r *rig) snapshot() breaker.Snapshot { return r.b.Snapshot(r.now) }

func (r *rig) want(s breaker.State) {
	r.t.Helper()
	if got := r.snapshot(); got.State != s {
		r.t.Fatalf("at %v: state %v (%s), want %v", r.now, got.State, got.Text, s)
	}
}

func (r *rig) last() breaker.Transition {
	r.t.Helper()
	if len(r.transitions) == 0 {
		r.t.Fatal("there was no transition")
	}
	return r.transitions[len(r.transitions)-1]
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

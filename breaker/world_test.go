package breaker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tripline/tripline/breaker"
)

// world runs a breaker beside its oracle and checks, after every step, that
// they agree and that the invariants hold.
type world struct {
	b       *breaker.Breaker
	o       *oracle
	c       breaker.Config
	now     time.Duration
	out     []ticket // unreported, oldest first
	old     []ticket // reported
	ids     int
	row     map[uint64]int  // healthy probes in a row, by generation
	failed  map[uint64]bool // generations with a failed probe
	changes []breaker.Transition
	seen    int // of the changes
	err     error
}

type ticket struct {
	id    int
	begin time.Duration
	p     breaker.Permit
}

func newWorld(c breaker.Config) *world {
	w := &world{row: map[uint64]int{}, failed: map[uint64]bool{}}
	c.Hooks.Transition = func(tr breaker.Transition) { w.changes = append(w.changes, tr) }
	c.Rand = rand.New(rand.NewPCG(1, 1)).Float64
	w.b = breaker.New(c)
	w.c = w.b.Config()
	same := w.c
	same.Rand = rand.New(rand.NewPCG(1, 1)).Float64
	w.o = newOracle(same)
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) pass(d time.Duration) {
	w.now += d
	w.check()
}

func (w *world) toNext() {
	if next := w.b.Poll(w.now); next != breaker.Never {
		w.now = max(w.now, next)
	}
	w.check()
}

func (w *world) admit() {
	w.ids++
	p, err := w.b.Admit(w.now)
	got := "call"
	switch {
	case err != nil:
		got = err.Error()
	case p.Probe():
		got = "probe"
	}
	if want := w.o.admit(w.ids, w.now); got != want {
		w.fail("Admit at %v: %q, the oracle says %q", w.now, got, want)
	}
	if err == nil {
		w.out = append(w.out, ticket{w.ids, max(w.now, w.o.clock), p})
	}
	w.check()
}

// report reports the i-th permit that is out.
func (w *world) report(i int, o breaker.Outcome) {
	t := w.out[i]
	w.out = append(w.out[:i:i], w.out[i+1:]...)
	w.old = append(w.old, t)
	w.reportTicket(t, o)
}

func (w *world) reportTicket(t ticket, o breaker.Outcome) {
	// Looking plays what time alone decides; every other report comes as a
	// surprise.
	look := t.id%2 == 0
	var before breaker.Snapshot
	if look {
		before = w.b.Snapshot(w.now)
	}
	v := t.p.Report(w.now, o)
	if want := w.o.report(t.id, t.begin, w.now, o); v != want {
		w.fail("Report(%v) at %v of a call of %v: %v, the oracle says %v", o, w.now, t.begin, v, want)
	}
	if t.p.Probe() {
		switch v {
		case breaker.VerdictHealthy:
			w.row[t.p.Generation()]++
		case breaker.VerdictFailed:
			w.failed[t.p.Generation()] = true
		}
	}
	if look && (v == breaker.VerdictStale || v == breaker.VerdictRepeated) {
		after := w.b.Snapshot(w.now)
		after.Counters = before.Counters
		after.InFlight, after.ProbesInFlight = before.InFlight, before.ProbesInFlight
		after.AliveButSlow, after.SlowP50 = before.AliveButSlow, before.SlowP50 // shown, decide nothing
		if after != before {
			w.fail("a %v report changed\n%+v to\n%+v", v, before, after)
		}
	}
	w.check()
}

// check holds the invariants.
func (w *world) check() {
	if err := w.o.check(w.b, w.now); err != nil {
		w.fail("%w", err)
	}
	probes := 0
	for _, t := range w.out {
		if t.p.Probe() && w.now < t.begin+w.c.Timeout+time.Second {
			probes++
		}
	}
	if probes > w.c.Probes {
		w.fail("%d probes are in flight, at most %d may be", probes, w.c.Probes)
	}
	for ; w.seen < len(w.changes); w.seen++ {
		w.checkChange(w.seen)
	}
}

func (w *world) checkChange(i int) {
	tr := w.changes[i]
	before := breaker.Transition{To: breaker.Closed, At: math.MinInt64, Rung: -1}
	if i > 0 {
		before = w.changes[i-1]
	}
	switch {
	case tr.From != before.To || tr.Generation != uint64(i)+1 || tr.At < before.At:
		w.fail("transition %+v follows %+v", tr, before)
	case tr.To == breaker.Closed && (tr.From != breaker.HalfOpen || w.row[before.Generation] < w.c.Successes || w.failed[before.Generation]):
		w.fail("closed after %d healthy probes in a row of %d (failed: %v)", w.row[before.Generation], w.c.Successes, w.failed[before.Generation])
	case tr.To != breaker.Open:
	case tr.From == breaker.HalfOpen && tr.Rung != before.Rung+1:
		w.fail("a reopening goes from rung %d to %d", before.Rung, tr.Rung)
	case tr.From == breaker.Closed && tr.Rung != 0 && tr.Rung != before.Rung+1:
		w.fail("a trip goes from rung %d to %d", before.Rung, tr.Rung)
	case tr.From == breaker.Closed && tr.Rung != 0 && tr.At-before.At >= w.c.Settle:
		w.fail("rung %d after a clean close", tr.Rung)
	default:
		nominal := min(float64(w.c.Max), float64(w.c.Base)*math.Pow(w.c.Factor, float64(tr.Rung)))
		low, high := nominal*(1-w.c.Jitter)-1, max(nominal*(1+w.c.Jitter), float64(w.c.Max))+1
		if got := float64(tr.Window); got < low || got > high {
			w.fail("window of rung %d is %v", tr.Rung, tr.Window)
		}
	}
}

// end checks that half-open always ends, even when nobody reports.
func (w *world) end() {
	lease := w.c.Timeout + time.Second
	w.check() // tells the breaker the time: it may have been open meanwhile
	for i, began := 0, w.now; w.b.State() == breaker.HalfOpen; i++ {
		if w.now-began > lease+w.c.P99+1 || i > 100 {
			w.fail("half-open since %v, with probes that never answer, at %v", began, w.now)
			return
		}
		w.admit()
		w.toNext()
	}
}

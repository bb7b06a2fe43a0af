package breaker_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tripline/tripline/breaker"
)

// oracle is the breaker once more, as plainly as the rules can be written:
// it keeps every call and every sample, and looks through all of them each
// time. The tests hold the breaker to it.
type oracle struct {
	c          breaker.Config
	lease      time.Duration
	state      breaker.State
	generation uint64
	clock      time.Duration
	since      time.Duration
	until      time.Duration
	asked      time.Duration
	next, rung int
	hinted     bool
	trust      bool
	successes  int
	row        int
	calls      []*oracleCall // that are out, oldest first
	start      time.Duration // of the window's slices
	started    bool
	samples    []sample
}

type oracleCall struct {
	id         int
	generation uint64
	begin      time.Duration
	probe      bool
	overdue    bool
	behind     bool
}

type sample struct {
	slice   int64
	latency time.Duration // Never for one that is still in flight past P99
	failed  bool
	extra   bool // adds its failure only: it was counted when it passed P99
}

func newOracle(c breaker.Config) *oracle {
	return &oracle{c: c, lease: c.Timeout + time.Second, clock: math.MinInt64, asked: math.MinInt64, trust: true}
}

// advance plays what time alone decides, one moment after the other.
func (o *oracle) advance(now time.Duration) time.Duration {
	o.clock = max(o.clock, now)
	if !o.started {
		o.started, o.start = true, o.clock
	}
	for {
		at, happen := breaker.Never, func(time.Duration) {}
		if o.state == breaker.Open {
			at, happen = o.until, o.halfOpen
		}
		for _, c := range slices.Backward(o.calls) {
			if t := c.begin + o.lease; t <= at {
				at, happen = t, func(at time.Duration) { o.expire(c, at) }
			}
			if t := c.begin + o.c.P99 + 1; t <= at && !c.overdue && c.generation == o.generation {
				at, happen = t, func(at time.Duration) { o.overdue(c, at) }
			}
		}
		if at > o.clock {
			return o.clock
		}
		happen(at)
	}
}

func (o *oracle) halfOpen(at time.Duration) {
	o.successes = 0
	o.move(at, breaker.HalfOpen)
}

func (o *oracle) move(at time.Duration, to breaker.State) {
	o.state, o.since = to, at
	o.generation++
	o.row = 0
	if to == breaker.Closed {
		o.samples, o.start, o.asked = nil, at, math.MinInt64
	}
}

func (o *oracle) open(at time.Duration) {
	o.rung = o.next
	o.next++
	w := min(float64(o.c.Max), float64(o.c.Base)*math.Pow(o.c.Factor, float64(o.rung)))
	window := time.Duration(w * (1 + o.c.Jitter*(2*o.c.Rand()-1)))
	if o.asked > at {
		window = max(window, min(o.asked-at, o.c.Max))
	}
	o.until = at + window
	o.move(at, breaker.Open)
}

func (o *oracle) reopen(at time.Duration) {
	if o.hinted {
		o.hinted, o.trust = false, false
	}
	o.open(at)
}

func (o *oracle) expire(c *oracleCall, at time.Duration) {
	o.remove(c)
	if c.generation == o.generation && !c.probe {
		o.add(sample{o.slice(at), 0, true, true}, at)
	}
}

func (o *oracle) overdue(c *oracleCall, at time.Duration) {
	c.overdue = true
	if c.probe {
		o.reopen(at)
		return
	}
	o.bad(c)
	o.add(sample{o.slice(at), breaker.Never, false, false}, at)
}

func (o *oracle) slice(at time.Duration) int64 { return int64((at - o.start) / (o.c.Window / 10)) }

func (o *oracle) bad(c *oracleCall) {
	if o.row > 0 && c.behind {
		return
	}
	o.row++
	for _, other := range o.calls {
		other.behind = true
	}
}

// add takes a sample and applies the trip rules.
func (o *oracle) add(s sample, at time.Duration) {
	o.samples = append(o.samples, s)
	calls, over, errors := o.count(at)
	var latencies []time.Duration
	for _, s := range o.samples {
		if s.slice > o.slice(at)-10 && !s.extra {
			latencies = append(latencies, s.latency)
		}
	}
	slices.Sort(latencies)
	// Nearest rank: the smallest latency that at least 99 % are not above.
	p99 := time.Duration(0)
	if calls > 0 {
		p99 = latencies[(99*calls+99)/100-1]
	}
	ratio := func(part, percent int) bool {
		return part > 0 && calls >= o.c.RatioSamples && part*100 >= percent*calls
	}
	if over >= 3 && calls >= o.c.MinSamples && p99 > o.c.P99 || ratio(over, o.c.SlowPercent) ||
		ratio(errors, o.c.ErrorPercent) || o.row >= o.c.Consecutive {
		if at-o.since >= o.c.Settle {
			o.next, o.trust = 0, true
		} else if o.hinted {
			o.trust = false
		}
		o.hinted = false
		o.open(at)
	}
}

func (o *oracle) count(at time.Duration) (calls, over, errors int) {
	for _, s := range o.samples {
		if s.slice <= o.slice(at)-10 {
			continue
		}
		if !s.extra {
			calls++
			if s.latency > o.c.P99 {
				over++
			}
		}
		if s.failed {
			errors++
		}
	}
	return calls, over, errors
}

func (o *oracle) remove(c *oracleCall) {
	o.calls = slices.DeleteFunc(o.calls, func(x *oracleCall) bool { return x == c })
}

func (o *oracle) probes() int {
	n := 0
	for _, c := range o.calls {
		if c.probe {
			n++
		}
	}
	return n
}

// admit returns the error's text, or "probe" or "call".
func (o *oracle) admit(id int, now time.Duration) string {
	now = o.advance(now)
	switch {
	case o.state == breaker.Open:
		return fmt.Sprintf("breaker is open until %v", o.until)
	case o.state == breaker.HalfOpen && o.probes() >= o.c.Probes:
		return breaker.ErrProbeCap.Error()
	}
	c := &oracleCall{id: id, generation: o.generation, begin: now, probe: o.state == breaker.HalfOpen}
	o.calls = append(o.calls, c)
	if c.probe {
		return "probe"
	}
	return "call"
}

func (o *oracle) report(id int, begin, now time.Duration, out breaker.Outcome) breaker.Verdict {
	now = o.advance(now)
	i := slices.IndexFunc(o.calls, func(c *oracleCall) bool { return c.id == id })
	if i < 0 {
		if now-begin >= o.lease {
			return breaker.VerdictStale
		}
		return breaker.VerdictRepeated
	}
	c := o.calls[i]
	o.remove(c)
	latency := now - c.begin
	switch {
	case c.generation != o.generation:
		return breaker.VerdictStale
	case out.Kind == breaker.Ignored:
		return breaker.VerdictIgnored
	case out.Kind == breaker.Cancelled && !c.probe:
		return breaker.VerdictCancelled
	case c.probe && out.Kind == breaker.OK:
		if o.successes++; o.successes == o.c.Successes {
			o.move(now, breaker.Closed)
		}
		return breaker.VerdictHealthy
	case out.Kind == breaker.OK && !c.overdue:
		o.row = 0
		o.add(sample{o.slice(now), latency, false, false}, now)
		return breaker.VerdictHealthy
	case out.Kind == breaker.OK:
		return breaker.VerdictSlow
	}
	if out.RetryAfter > 0 {
		o.asked = max(o.asked, now+out.RetryAfter)
	}
	if c.probe {
		o.reopen(now)
		return breaker.VerdictFailed
	}
	if !c.overdue {
		o.bad(c)
	}
	o.add(sample{o.slice(now), latency, true, c.overdue}, now)
	return breaker.VerdictFailed
}

func (o *oracle) hint(now time.Duration) {
	now = o.advance(now)
	if o.state != breaker.Open || !o.trust {
		return
	}
	until := max(now, o.since+o.c.Base, min(o.asked, o.since+o.c.Max))
	if until < o.until {
		o.until, o.hinted = until, true
		o.advance(now)
	}
}

func (o *oracle) poll(now time.Duration) time.Duration {
	o.advance(now)
	next := breaker.Never
	if o.state == breaker.Open {
		next = o.until
	}
	for _, c := range o.calls {
		if !c.overdue && c.generation == o.generation {
			next = min(next, c.begin+o.c.P99+1)
		} else {
			next = min(next, c.begin+o.lease)
		}
	}
	return next
}

// check compares what both show.
func (o *oracle) check(b *breaker.Breaker, now time.Duration) error {
	s := b.Snapshot(now)
	now = o.advance(now)
	type shown struct {
		state                  breaker.State
		generation             uint64
		until                  time.Duration
		rung, inFlight, probes int
		calls, over, errors    int
		row, successes         int
		trust                  bool
	}
	want := shown{state: o.state, generation: o.generation, until: o.until, rung: o.rung,
		inFlight: len(o.calls), probes: o.probes(),
		trust: o.trust || o.state == breaker.Closed && now-o.since >= o.c.Settle}
	switch o.state {
	case breaker.Closed:
		want.calls, want.over, want.errors = o.count(now)
		want.row = o.row
	case breaker.HalfOpen:
		want.successes = o.successes
	}
	got := shown{s.State, s.Generation, s.Until, s.Rung, s.InFlight, s.ProbesInFlight,
		s.Calls, s.Over, s.Errors, s.BadRow, s.Successes, s.HintsTrusted}
	if got != want {
		return fmt.Errorf("at %v the breaker shows\n%+v, the oracle\n%+v", now, got, want)
	}
	if got, want := b.Poll(now), o.poll(now); cmp.Compare(got, want) != 0 {
		return fmt.Errorf("at %v Poll returns %v, the oracle %v", now, got, want)
	}
	return nil
}

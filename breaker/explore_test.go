package breaker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// TestExhaustive explores every sequence of a small breaker's steps, to a
// bounded depth, from several beginnings: states x reports x times. Sequences
// that lead to what looks the same are followed once.
func TestExhaustive(t *testing.T) {
	depth := 7
	if testing.Short() {
		depth = 5
	}
	small := breaker.Config{
		P99: 10 * ms, Timeout: 20 * ms, Consecutive: 2, RatioSamples: 3, MinSamples: 100,
		Base: 40 * ms, Max: 60 * ms, Settle: 30 * ms, Probes: 2, Successes: 2, Window: sec,
	}
	steps := []struct {
		name string
		do   func(*world)
	}{
		{"admit", (*world).admit},
		{"oldest ok", reportAs(false, breaker.OK, 0)},
		{"oldest failed", reportAs(false, breaker.Failed, 0)},
		{"newest ok", reportAs(true, breaker.OK, 0)},
		{"newest failed", reportAs(true, breaker.Failed, 50*ms)},
		{"newest ignored", reportAs(true, breaker.Ignored, 0)},
		{"newest cancelled", reportAs(true, breaker.Cancelled, 0)},
		{"again", func(w *world) {
			if n := len(w.old); n > 0 {
				w.reportTicket(w.old[n-1], breaker.Outcome{Kind: breaker.Failed})
			}
		}},
		{"hint", func(w *world) { w.b.Hint(w.now); w.o.hint(w.now); w.check() }},
		{"4 ms", func(w *world) { w.pass(4 * ms) }},
		{"next", (*world).toNext},
		{"lease", func(w *world) { w.pass(1020 * ms) }},
	}
	beginnings := [][]int{
		{},                             // closed
		{0, 2, 0, 2, 10},               // half-open
		{0, 2, 0, 2, 10, 0, 0, 10, 10}, // half-open again, with both probes hung
		{0, 2, 0, 2, 10, 0, 1, 0, 1},   // just closed
		{0, 2, 0, 2, 10, 0, 2, 9, 8},   // open on the second rung, hinted
	}
	runs := 0
	for _, beginning := range beginnings {
		seen := map[string]int{}
		var explore func(path []int, left int)
		explore = func(path []int, left int) {
			w := newWorld(small)
			for _, s := range path {
				steps[s].do(w)
			}
			looks := w.looks()
			runs++
			w.end()
			if w.err != nil {
				var names []string
				for _, s := range path {
					names = append(names, steps[s].name)
				}
				t.Fatalf("after %s: %v", strings.Join(names, ", "), w.err)
			}
			if left == 0 || seen[looks] >= left {
				return
			}
			seen[looks] = left
			for s := range steps {
				explore(append(path[:len(path):len(path)], s), left-1)
			}
		}
		explore(beginning, depth)
	}
	t.Logf("%d sequences", runs)
}

// reportAs reports the newest or the oldest permit that is out.
func reportAs(newest bool, kind breaker.Kind, retryAfter time.Duration) func(*world) {
	return func(w *world) {
		if len(w.out) == 0 {
			return
		}
		i := 0
		if newest {
			i = len(w.out) - 1
		}
		w.report(i, breaker.Outcome{Kind: kind, RetryAfter: retryAfter})
	}
}

// looks describes the world with all times relative to now, and generations
// to the present one.
func (w *world) looks() string {
	var b strings.Builder
	o := w.o
	rel := func(d time.Duration) time.Duration { return max(d-w.now, -2*sec) }
	fmt.Fprint(&b, o.state, rel(o.since), rel(o.until), rel(o.asked), min(o.next, 3), o.hinted, o.trust, o.successes, o.row)
	for _, c := range o.calls {
		fmt.Fprint(&b, "|", rel(c.begin), o.generation-c.generation, c.probe, c.overdue, c.behind)
	}
	if o.state == breaker.Closed {
		calls, over, errors := o.count(w.now)
		fmt.Fprint(&b, "|", calls, over, errors, rel(o.start))
	}
	fmt.Fprint(&b, "|", len(w.old) > 0, len(w.out))
	return b.String()
}

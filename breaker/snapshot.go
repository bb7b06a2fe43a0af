package breaker

import (
	"slices"
	"sync/atomic"
	"time"
)

// Counters count what a breaker did since it was made.
type Counters struct {
	Trips      uint64 // closed to open
	Reopens    uint64 // half-open to open
	Closes     uint64 // half-open to closed
	Forced     uint64 // opened by an operator
	Stale      uint64 // reports of another generation or past their lease
	Repeated   uint64 // reports of a permit that had been reported
	Expired    uint64 // permits that were never reported in time
	HookPanics uint64
}

// Snapshot is what a breaker looks like at a moment, for display and metrics.
// Times are on the caller's clock; 0 latencies mean "not measured".
type Snapshot struct {
	State      State
	Generation uint64
	Since      time.Duration // of the last transition
	Reason     Reason        // of the last transition
	Text       string        // the same in words

	// Of the current open window, or the last one.
	Rung   int           // of the ladder, from 0
	Window time.Duration // its length when it began
	Until  time.Duration // its end

	// Of the sliding window, while closed.
	Calls, Over, Errors   int           // judged calls; of these over P99, failed
	P50, P99              time.Duration // within 7 %
	SlowRatio, ErrorRatio float64       // 0 to 1
	BadRow                int           // bad calls in a row

	InFlight       int // permits out, probes among them
	ProbesInFlight int // of all generations, never above Config.Probes
	Successes      int // healthy probes of this half-open state

	// AliveButSlow: the last 3 or more half-open states ended because probes
	// that answered OK took longer than Limit. SlowP50 is the median of what
	// probes took: raise p99 to at least twice the consumer's ordinary P99.
	AliveButSlow bool
	SlowP50      time.Duration
	Limit        time.Duration // Config.P99

	// HealthyP50 is the median latency of the last healthy window, and
	// FastestProbe the least latency of a healthy probe of the last half-open
	// state: what the consumer ordinarily takes. See [Breaker.Ordinary].
	HealthyP50   time.Duration
	FastestProbe time.Duration

	HintsTrusted bool // no hint was wrong since the last clean close

	// RampWindow is how many calls a [Ramp] beside the breaker allows in
	// flight, 0 if none is in force. The breaker doesn't know: whoever owns
	// both fills it in.
	RampWindow int

	Counters Counters
}

// Snapshot applies what time alone decides up to now, as Poll does, and
// returns the state of things.
func (b *Breaker) Snapshot(now time.Duration) Snapshot {
	b.mu.Lock()
	defer b.unlockAndTell()
	now = b.advance(now)
	if b.settled(now) {
		b.ladder.clean()
	}
	sum, latencies, inFlight := b.window.sum(), b.window.latencies(), 0
	b.places.Load().each(func(*atomic.Uint64, uint64) { inFlight++ })
	s := Snapshot{
		State: b.state, Generation: b.generation, Since: b.since,
		Reason: b.cause.reason, Text: b.cause.String(),
		Rung: b.ladder.rung, Window: b.ladder.window, Until: b.ladder.until,
		InFlight: inFlight, ProbesInFlight: b.probing.inFlight,
		AliveButSlow: b.probing.slowRow >= aliveAfter,
		SlowP50:      b.measured.probeMedian(),
		Limit:        b.cfg.P99,
		HealthyP50:   b.measured.healthy,
		FastestProbe: b.measured.fastest,
		HintsTrusted: b.ladder.trust,
		Counters:     b.counters,
	}
	switch b.state {
	case Closed:
		s.Calls, s.Over, s.Errors = sum.calls, sum.over, sum.errors
		s.P50, s.P99 = latencies.quantile(50), latencies.quantile(99)
		s.SlowRatio, s.ErrorRatio = ratio(sum.over, sum.calls), ratio(sum.errors, sum.calls)
		s.BadRow = b.row
	case HalfOpen:
		s.Successes = b.probing.successes
	}
	return s
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}

// Ordinary returns what a call to the consumer ordinarily takes: the median
// of the last healthy window; while there has been none, the fastest healthy
// probe or call since the breaker was last open; else 0. It is what a [Ramp]
// wants.
func (b *Breaker) Ordinary() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.measured.healthy != 0 {
		return b.measured.healthy
	}
	fastest := b.measured.fastest
	if b.state == Closed {
		all := b.window.latencies()
		if call := all.least(); call > 0 && (fastest == 0 || call < fastest) {
			fastest = call
		}
	}
	return fastest
}

// measured is what the breaker remembers of latencies beyond its window. It
// decides nothing.
type measured struct {
	healthy time.Duration // median of the last healthy window
	fastest time.Duration // healthy probe
	probes  [9]time.Duration
	count   int // of probes, ever since the last close
}

// keep remembers the median of a window, if that is healthy.
func (m *measured) keep(w *window) {
	s := w.sum()
	if s.calls >= 10 && 100*s.over <= s.calls && 100*s.errors <= s.calls {
		all := w.latencies()
		m.healthy = all.quantile(50)
	}
}

// probe remembers the latency of a probe that answered OK.
func (m *measured) probe(latency time.Duration, healthy bool) {
	if healthy && (m.fastest == 0 || latency < m.fastest) {
		m.fastest = latency
	}
	m.probes[m.count%len(m.probes)] = latency
	m.count++
}

// probeMedian returns the median of the last probes, 0 if there were none.
func (m *measured) probeMedian() time.Duration {
	n := min(m.count, len(m.probes))
	if n == 0 {
		return 0
	}
	sorted := m.probes
	slices.Sort(sorted[:n])
	return sorted[(n-1)/2]
}

// describe says what is bad about the sliding window.
func (b *Breaker) describe(at time.Duration, reason Reason) cause {
	all := b.window.latencies()
	// Calls that are still in flight past P99 have taken at least so long.
	b.places.Load().each(func(_ *atomic.Uint64, w uint64) {
		if w&overdue != 0 && b.current(w) {
			all[bucket(at-begin(w, at))]++
		}
	})
	return cause{
		reason: reason, measured: all.quantile(99), limit: b.cfg.P99, counts: b.window.sum(), calls: b.row,
	}
}

package breaker_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// TestB3_CapHoldsUnderRace: 64 goroutines race at the end of each open
// window; there are never more probes in flight than the cap, nobody's permit
// is lost, and each transition follows from the one before.
func TestB3_CapHoldsUnderRace(t *testing.T) {
	const goroutines, rounds = 64, 1500
	var probes, most, refused, calls atomic.Int64
	var clock atomic.Int64
	var lastGeneration uint64
	b := breaker.New(breaker.Config{
		Base: ms, Max: 4 * ms, Settle: 2 * ms, Successes: 3,
		Timeout: time.Hour, // no lease ends while a goroutine waits for its turn
		Hooks: breaker.Hooks{Transition: func(tr breaker.Transition) {
			if tr.Generation != lastGeneration+1 { // one hook at a time: no lock
				t.Errorf("generation %d follows %d", tr.Generation, lastGeneration)
			}
			lastGeneration = tr.Generation
		}},
	})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for range rounds {
				now := time.Duration(clock.Add(int64(rng.IntN(int(100 * time.Microsecond)))))
				p, err := b.Admit(now)
				if err != nil {
					if !errors.Is(err, breaker.ErrOpen) && !errors.Is(err, breaker.ErrProbeCap) {
						t.Errorf("Admit: %v", err)
					}
					refused.Add(1)
					continue
				}
				calls.Add(1)
				if p.Probe() {
					if n := probes.Add(1); n > 2 {
						t.Errorf("%d probes in flight", n)
					} else if n > most.Load() {
						most.Store(n)
					}
				}
				for range rng.IntN(3) {
					runtime.Gosched()
				}
				if p.Probe() {
					probes.Add(-1)
				}
				kind := breaker.OK
				if now/(20*ms)%2 == 1 || rng.IntN(20) == 0 { // sick every other 20 ms
					kind = breaker.Kind(1 + rng.IntN(3))
				}
				p.Report(time.Duration(clock.Load()), breaker.Outcome{Kind: kind})
				if rng.IntN(8) == 0 {
					p.Report(time.Duration(clock.Load()), breaker.Outcome{Kind: breaker.Failed})
					b.Poll(time.Duration(clock.Load()))
				}
			}
		})
	}
	wg.Wait()
	s := b.Snapshot(time.Duration(clock.Load()))
	if s.InFlight != 0 || s.ProbesInFlight != 0 {
		t.Errorf("%d permits and %d probes are out in the end", s.InFlight, s.ProbesInFlight)
	}
	if most.Load() != 2 || s.Counters.Trips == 0 || s.Counters.Closes == 0 || refused.Load() == 0 {
		t.Errorf("nothing raced: most probes %d, refused %d, %+v", most.Load(), refused.Load(), s.Counters)
	}
	t.Logf("%d calls, %d refused, %+v", calls.Load(), refused.Load(), s.Counters)
}

// TestB3_HundredAtTheWindowsEnd: a hundred goroutines ask at the very moment.
func TestB3_HundredAtTheWindowsEnd(t *testing.T) {
	for range 50 {
		b := breaker.New(breaker.Config{})
		b.ForceOpen(0, sec)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 100 {
			wg.Go(func() {
				<-start
				if _, err := b.Admit(sec); err == nil {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		equal(t, "admitted", admitted.Load(), 2)
	}
}

// TestLockFreeCountsAreExact: what healthy calls add without the lock is all
// there in the end, and a thousand calls in flight at once each keep a place.
func TestLockFreeCountsAreExact(t *testing.T) {
	b := breaker.New(breaker.Config{P99: sec})
	const goroutines, rounds, depth = 16, 20, 64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			var out [depth]breaker.Permit
			for r := range rounds {
				for i := range out {
					now := time.Duration(r*depth+i)*time.Microsecond + time.Duration(g)
					p, err := b.Admit(now)
					if err != nil {
						t.Error(err)
						return
					}
					out[i] = p
				}
				for _, p := range out {
					if v := p.Report(time.Duration(r+1)*ms, breaker.Outcome{}); v != breaker.VerdictHealthy {
						t.Errorf("verdict %v", v)
					}
				}
			}
		})
	}
	wg.Wait()
	s := b.Snapshot(30 * ms)
	equal(t, "calls", s.Calls, goroutines*rounds*depth)
	equal(t, "permits out", s.InFlight, 0)
}

// TestNoAllocation: neither a call nor a refusal allocates.
func TestNoAllocation(t *testing.T) {
	b := breaker.New(breaker.Config{})
	now := time.Duration(0)
	call := func(latency time.Duration, kind breaker.Kind) func() {
		return func() {
			now += ms / 16
			p, _ := b.Admit(now)
			now += latency
			p.Report(now, breaker.Outcome{Kind: kind})
		}
	}
	equal(t, "healthy", testing.AllocsPerRun(1000, call(ms/16, breaker.OK)), 0)
	b.ForceOpen(now, time.Hour)
	equal(t, "refused", testing.AllocsPerRun(1000, func() { b.Admit(now) }), 0)
}

package breaker_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tripline/tripline/breaker"
)

// TestRandom runs long random histories of random breakers beside the oracle.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(breaker.Config{
			P99:          rapid.SampledFrom([]time.Duration{ms, 10 * ms, 50 * ms}).Draw(t, "p99"),
			Timeout:      rapid.SampledFrom([]time.Duration{50 * ms, 200 * ms, 3 * sec}).Draw(t, "timeout"),
			Window:       rapid.SampledFrom([]time.Duration{sec, 10 * sec}).Draw(t, "window"),
			MinSamples:   rapid.IntRange(10, 120).Draw(t, "min_samples"),
			RatioSamples: rapid.IntRange(2, 12).Draw(t, "ratio_samples"),
			SlowPercent:  rapid.IntRange(10, 100).Draw(t, "slow_percent"),
			ErrorPercent: rapid.IntRange(10, 100).Draw(t, "error_percent"),
			Consecutive:  rapid.IntRange(1, 8).Draw(t, "consecutive"),
			Base:         rapid.SampledFrom([]time.Duration{5 * ms, 100 * ms, sec}).Draw(t, "base"),
			Max:          rapid.SampledFrom([]time.Duration{sec, 30 * sec}).Draw(t, "max"),
			Jitter:       rapid.SampledFrom([]float64{breaker.None, 0.2, 0.5}).Draw(t, "jitter"),
			Settle:       rapid.SampledFrom([]time.Duration{breaker.None, 100 * ms, 10 * sec}).Draw(t, "settle"),
			Probes:       rapid.IntRange(1, 3).Draw(t, "probes"),
			Successes:    rapid.IntRange(1, 5).Draw(t, "successes"),
		})
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			w.step(rapid.Byte().Draw(t, "step"), rapid.Byte().Draw(t, "size"))
			if w.err != nil {
				t.Fatal(w.err)
			}
		}
		if w.end(); w.err != nil {
			t.Fatal(w.err)
		}
	})
}

// FuzzBreaker does the same from bytes.
func FuzzBreaker(f *testing.F) {
	f.Add([]byte{1, 2, 0, 0, 9, 0, 3, 0, 0, 9, 1})
	f.Add([]byte{0, 1, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 11, 0, 0, 0, 9, 0, 10, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 || len(data) > 400 {
			return
		}
		w := newWorld(breaker.Config{
			P99: 10 * ms, Timeout: 40 * ms, Base: 30 * ms, Max: 200 * ms, Settle: 100 * ms, Window: sec,
			Probes: 1 + int(data[0]%3), Successes: 1 + int(data[1]%5), MinSamples: 20, RatioSamples: 4,
		})
		for i := 2; i+1 < len(data); i += 2 {
			w.step(data[i], data[i+1])
		}
		if w.end(); w.err != nil {
			t.Fatal(w.err)
		}
	})
}

// step does one of the things that can be done; size says how much of it.
func (w *world) step(what, size byte) {
	i := int(size)
	pick := func(kind breaker.Kind) {
		if len(w.out) > 0 {
			w.report(i%len(w.out), breaker.Outcome{Kind: kind, RetryAfter: time.Duration(i%7) * sec / 8})
		}
	}
	switch what % 16 {
	case 0, 1, 2:
		w.admit()
	case 3: // a burst of healthy calls
		for range i % 40 {
			w.admit()
			w.now += w.c.P99 / 16
			if n := len(w.out); n > 0 {
				w.report(n-1, breaker.Outcome{})
			}
		}
	case 4, 5:
		pick(breaker.Failed)
	case 6, 7:
		pick(breaker.OK)
	case 8:
		pick(breaker.Ignored)
	case 9:
		pick(breaker.Cancelled)
	case 10:
		w.toNext()
	case 11:
		w.pass(time.Duration(i+1) * w.c.P99 / 128)
	case 12:
		w.pass(time.Duration(i+1) * w.c.Base / 64)
	case 13: // without looking at what the time does
		w.now += time.Duration(i+1) * (w.c.Timeout + sec) / 128
	case 14:
		if len(w.old) > 0 {
			w.reportTicket(w.old[i%len(w.old)], breaker.Outcome{Kind: breaker.Kind(i % 4)})
		}
	case 15:
		w.b.Hint(w.now)
		w.o.hint(w.now)
		w.check()
	}
}

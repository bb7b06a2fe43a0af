package breaker_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

func TestDefaults(t *testing.T) {
	c := breaker.New(breaker.Config{}).Config()
	equal(t, "p99", c.P99, 50*ms)
	equal(t, "timeout", c.Timeout, 200*ms)
	equal(t, "window", c.Window, 10*sec)
	equal(t, "min_samples", c.MinSamples, 100)
	equal(t, "probes", c.Probes, 2)
	equal(t, "successes", c.Successes, 5)
	equal(t, "base", c.Base, sec)
	equal(t, "max", c.Max, 30*sec)
	equal(t, "factor", c.Factor, 2)
	equal(t, "jitter", c.Jitter, 0.2)
	equal(t, "settle", c.Settle, 10*sec)
	equal(t, "timeout follows p99", breaker.New(breaker.Config{P99: sec}).Config().Timeout, 4*sec)
	equal(t, "max follows base", breaker.New(breaker.Config{Base: time.Minute}).Config().Max, time.Minute)
	none := breaker.New(breaker.Config{Jitter: breaker.None, Settle: breaker.None}).Config()
	equal(t, "no jitter", none.Jitter, 0)
	equal(t, "no settle", none.Settle, 0)
}

func TestValidate(t *testing.T) {
	tests := []struct {
		config breaker.Config
		want   string
	}{
		{breaker.Config{P99: 900 * time.Microsecond}, "p99 900µs is out of range: 1ms to 10m0s"},
		{breaker.Config{P99: time.Hour}, "p99 1h0m0s"},
		{breaker.Config{Timeout: 49 * ms}, "timeout 49ms is out of range: 50ms to 1h0m0s"},
		{breaker.Config{Probes: 4}, "probes 4 is out of range: 1 to 3"},
		{breaker.Config{Probes: -1}, "probes -1"},
		{breaker.Config{Successes: 101}, "successes 101"},
		{breaker.Config{Base: -sec}, "base -1s"},
		{breaker.Config{Base: 40 * sec, Max: 30 * sec}, "max 30s is out of range: 40s to 24h0m0s"},
		{breaker.Config{Factor: 0.5}, "factor 0.5 is out of range: 1 to 10"},
		{breaker.Config{Factor: math.NaN()}, "factor NaN"},
		{breaker.Config{Jitter: 0.6}, "jitter 0.6 is out of range: 0 to 0.5"},
		{breaker.Config{Jitter: -0.1}, "jitter -0.1"},
		{breaker.Config{Jitter: math.NaN()}, "jitter NaN"},
		{breaker.Config{Settle: -2}, "settle -2ns"},
		{breaker.Config{Window: ms}, "window 1ms"},
		{breaker.Config{MinSamples: -5}, "min_samples -5"},
		{breaker.Config{SlowPercent: 101}, "slow_percent 101"},
		{breaker.Config{ErrorPercent: -1}, "error_percent -1"},
		{breaker.Config{Consecutive: 1001}, "consecutive 1001"},
		{breaker.Config{Probes: 9, Jitter: 3}, "jitter 3 is out of range: 0 to 0.5\nprobes 9"},
	}
	for _, test := range tests {
		err := test.config.Validate()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Validate(%+v) = %v, want %q", test.config, err, test.want)
			continue
		}
		if _, ok := errors.AsType[*breaker.ConfigError](err); !ok {
			t.Errorf("%v holds no ConfigError", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%+v) did not panic", test.config)
				}
			}()
			breaker.New(test.config)
		}()
	}
	if err := (breaker.Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
}

// TestFixedCooldown: the discipline of a fixed-cooldown breaker is a matter
// of configuration: 20 s without growth or jitter, one probe, one success,
// slow at 7 s.
func TestFixedCooldown(t *testing.T) {
	r := newRig(t, breaker.Config{
		P99: 7 * sec, Timeout: 10 * sec,
		Base: 20 * sec, Max: 20 * sec, Factor: 1, Jitter: breaker.None, Settle: breaker.None,
		Probes: 1, Successes: 1,
		Rand: func() float64 { return 0 },
	})
	for range 100 {
		// A request that a local validation rejects is not judged; a sparse
		// but valid answer is a success, however long it took below 7 s.
		equal(t, "local reject", r.call(0, breaker.Ignored), breaker.VerdictIgnored)
		equal(t, "sparse answer", r.call(6*sec, breaker.OK), breaker.VerdictHealthy)
	}
	for range 5 {
		r.call(7*sec+1, breaker.OK)
	}
	for range 10 {
		r.want(breaker.Open)
		equal(t, "cooldown", r.last().Window, 20*sec)
		r.wait()
		equal(t, "at its end", r.now, r.last().Until)
		p := r.admit()
		if _, err := r.b.Admit(r.now); !errors.Is(err, breaker.ErrProbeCap) {
			t.Fatalf("a second probe: %v", err)
		}
		r.now += sec
		r.report(p, breaker.Failed)
	}
	r.wait()
	r.call(sec, breaker.OK)
	r.want(breaker.Closed)
}

func TestWords(t *testing.T) {
	equal(t, "state", breaker.HalfOpen.String(), "half_open")
	equal(t, "kind", breaker.Cancelled.String(), "cancelled")
	equal(t, "verdict", breaker.VerdictRepeated.String(), "repeated")
	equal(t, "reason", breaker.ReasonProbesHealthy.String(), "probes_healthy")
	equal(t, "reason", breaker.ReasonHint.String(), "hint")
	equal(t, "none", breaker.ReasonNone.String(), "")
	equal(t, "call", breaker.CallProbeCap.String(), "probe_cap")
	equal(t, "source", breaker.Backlog.String(), "backlog")
	equal(t, "unknown", breaker.State(9).String(), "unknown")
}

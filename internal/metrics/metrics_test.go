package metrics_test

import (
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/internal/metrics"
)

// series counts those of a metric, and adds up their values.
func series(t *testing.T, m *metrics.Metrics, name string) (n int, sum float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			n++
			sum += s.GetCounter().GetValue()
		}
	}
	return n, sum
}

// Whatever a breaker does, it makes no series begin above 0: Prometheus could
// not see that one grow. All of a real breaker's life is told here.
func TestWhatABreakerDoesGrowsFromZero(t *testing.T) {
	const changes, probes = "tripline_breaker_transitions_total", "tripline_breaker_probes_total"
	m := metrics.New()
	hooks := m.Outlet("dispatch")
	before, sum := series(t, m, changes)
	verdicts, _ := series(t, m, probes)
	if before == 0 || verdicts == 0 || sum != 0 {
		t.Fatalf("%d changes, %d verdicts, together %v", before, verdicts, sum)
	}
	told := 0.0
	b := breaker.New(breaker.Config{Hooks: breaker.Hooks{
		Transition: func(tr breaker.Transition) { told++; m.Breaker("dispatch", tr) },
		Verdict: func(probe bool, v breaker.Verdict) {
			if probe {
				hooks.Probed(v)
			}
		},
	}})
	now := time.Duration(0)
	b.ForceOpen(now, 0)
	for range 10_000 {
		now += 100 * time.Millisecond
		b.Poll(now)
		if p, err := b.Admit(now); err == nil {
			kind := breaker.OK
			if now < 5*time.Minute {
				kind = breaker.Failed
			}
			p.Report(now, breaker.Outcome{Kind: kind})
		}
	}
	if n, sum := series(t, m, changes); n != before || sum != told || told < 5 {
		t.Errorf("%d series of changes, %v changes counted; want %d and %v", n, sum, before, told)
	}
	if n, sum := series(t, m, probes); n != verdicts || sum == 0 {
		t.Errorf("%d series of probes, %v probes counted; want %d", n, sum, verdicts)
	}
}

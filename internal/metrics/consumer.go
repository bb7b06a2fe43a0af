package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
)

// Outlet returns the hooks that count what a consumer's outlet does.
func (m *Metrics) Outlet(consumer string) fallback.Hooks {
	delivery := m.delivery.WithLabelValues(consumer)
	latency := m.latency.WithLabelValues(consumer)
	replayed := m.replayed.WithLabelValues(consumer)
	dropped := m.dropped.WithLabelValues(consumer)
	deliveries := m.deliveries.MustCurryWith(prometheus.Labels{"consumer": consumer})
	// Alerts and the dashboard look at how these grow, which Prometheus can't
	// see of a series that begins above 0: the first trip would not show.
	m.whereFailures.WithLabelValues(consumer)
	for r := breaker.ReasonP99; r <= breaker.ReasonProbesHealthy; r++ {
		m.changes.WithLabelValues(consumer, leadsTo(r).String(), r.String())
	}
	for v := breaker.VerdictHealthy; v <= breaker.VerdictRepeated; v++ {
		m.probes.WithLabelValues(consumer, v.String())
	}
	for _, r := range []fallback.DeadReason{
		fallback.DeadRejected, fallback.DeadMaxAttempts, fallback.DeadExpired, fallback.DeadOverflow, fallback.DeadUnsent,
	} {
		m.dead.WithLabelValues(consumer, string(r))
	}
	return fallback.Hooks{
		Delivered: func(d fallback.Delivery) {
			deliveries.WithLabelValues(string(d.Outcome)).Inc()
			delivery.Observe(d.Latency.Seconds())
			if d.Outcome == fallback.OutcomeOK && d.Since > 0 {
				latency.Observe(d.Since.Seconds())
			}
		},
		Probed:   func(v breaker.Verdict) { m.probes.WithLabelValues(consumer, v.String()).Inc() },
		Diverted: func(r fallback.Reason) { m.diverted.WithLabelValues(consumer, string(r)).Inc() },
		Replayed: func(time.Duration) { replayed.Inc() },
		Died:     func(r fallback.DeadReason) { m.dead.WithLabelValues(consumer, string(r)).Inc() },
		Dropped:  dropped.Inc,
	}
}

// leadsTo is the state that a breaker goes to for a reason.
func leadsTo(r breaker.Reason) breaker.State {
	switch r {
	case breaker.ReasonWindowEnded, breaker.ReasonHint, breaker.ReasonProbeNow:
		return breaker.HalfOpen
	case breaker.ReasonProbesHealthy:
		return breaker.Closed
	}
	return breaker.Open
}

// Breaker counts a change of a consumer's breaker.
func (m *Metrics) Breaker(consumer string, t breaker.Transition) {
	m.changes.WithLabelValues(consumer, t.To.String(), t.Reason.String()).Inc()
}

// Forget drops the series of a consumer that is no longer configured.
func (m *Metrics) Forget(consumer string) {
	labels := prometheus.Labels{"consumer": consumer}
	for _, v := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{
		m.deliveries, m.delivery, m.latency, m.changes, m.probes,
		m.diverted, m.replayed, m.dead, m.dropped, m.whereFailures,
	} {
		v.DeletePartialMatch(labels)
	}
}

func label(n int) string { return strconv.Itoa(n) }

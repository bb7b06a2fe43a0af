// Package metrics counts what the other packages tell through their hooks,
// for Prometheus. Labels are bounded: never a device or a fence.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

const namespace = "tripline"

// From 100 µs to 13 s: the limits that consumers are held to lie well inside.
var latencyBuckets = prometheus.ExponentialBuckets(100e-6, 2, 18)

// Metrics is a registry with all of Tripline's metrics.
type Metrics struct {
	registry *prometheus.Registry

	fixes       *prometheus.CounterVec
	lost        *prometheus.CounterVec
	transitions [geofence.Silent + 1]prometheus.Counter
	match       prometheus.Histogram
	commits     prometheus.Histogram
	restarts    *prometheus.CounterVec

	deliveries    *prometheus.CounterVec
	delivery      *prometheus.HistogramVec
	latency       *prometheus.HistogramVec
	changes       *prometheus.CounterVec
	probes        *prometheus.CounterVec
	diverted      *prometheus.CounterVec
	replayed      *prometheus.CounterVec
	dead          *prometheus.CounterVec
	dropped       *prometheus.CounterVec
	whereFailures *prometheus.CounterVec
}

// New returns the metrics of one process.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	m.fixes = m.counter("fixes_total", "Fixes by what became of them.", "result")
	m.lost = m.counter("lost_total", "Positions of the log that were gone before a partition had read them. Must stay 0.", "partition")
	transitions := m.counter("transitions_total", "Transitions, whether or not a consumer wants them.", "transition")
	for kind := geofence.Enter; kind <= geofence.Silent; kind++ {
		m.transitions[kind] = transitions.WithLabelValues(kind.String())
	}
	m.match = m.histogram("match_seconds", "Time to match and track one fix, as the mean of its batch.", prometheus.ExponentialBuckets(100e-9, 2, 18)).
		WithLabelValues().(prometheus.Histogram)
	m.commits = m.histogram("commit_seconds", "Time to store one step of a partition's progress.", latencyBuckets).
		WithLabelValues().(prometheus.Histogram)
	m.restarts = m.counter("reader_restarts_total", "Readers of a partition that broke off or went silent and began anew.", "partition")

	m.deliveries = m.counter("deliveries_total", "Calls to consumers by how they ended.", "consumer", "outcome")
	m.delivery = m.histogram("delivery_seconds", "Time of a call to a consumer.", latencyBuckets, "consumer")
	m.latency = m.histogram("trigger_latency_seconds", "Time from reading a location to the delivery of its trigger, of those that were not parked.", latencyBuckets, "consumer")
	m.changes = m.counter("breaker_transitions_total", "Changes of a breaker's state.", "consumer", "to", "reason")
	m.probes = m.counter("breaker_probes_total", "Probes by what the breaker made of them.", "consumer", "verdict")
	m.diverted = m.counter("diverted_total", "Triggers that became durable in the fallback queue, by why they went there.", "consumer", "reason")
	m.replayed = m.counter("replayed_total", "Parked triggers that the consumer has taken.", "consumer")
	m.dead = m.counter("dead_letters_total", "Triggers that were given up on and kept.", "consumer", "reason")
	m.dropped = m.counter("dropped_total", "Triggers that a full queue cost, where the configuration says so.", "consumer")
	m.whereFailures = m.counter("where_failures_total", "Transitions for which a match's `where` could not be evaluated; it did not match.", "consumer")
	return m
}

// Handler serves the metrics in the formats that Prometheus asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Registry is where the metrics are, for further collectors.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// Ingest returns the hooks that count what a source refuses and loses.
func (m *Metrics) Ingest() ingest.Hooks {
	ignored := m.fixes.WithLabelValues("ignored")
	dropped := m.fixes.WithLabelValues("dropped")
	return ingest.Hooks{
		Refused: func(r ingest.Reason) { m.fixes.WithLabelValues(string(r)).Inc() },
		Ignored: ignored.Inc,
		Lost: func(partition int, n uint64) {
			m.lost.WithLabelValues(label(partition)).Add(float64(n))
		},
		Dropped: func(n int) { dropped.Add(float64(n)) },
	}
}

// Partition returns the hooks that count what a partition does.
func (m *Metrics) Partition(number int) router.Hooks {
	var results [geofence.Teleport + 1]prometheus.Counter
	for r := range results {
		results[r] = m.fixes.WithLabelValues(geofence.Result(r).String())
	}
	restarts := m.restarts.WithLabelValues(label(number))
	m.lost.WithLabelValues(label(number)) // an alert looks at how it grows from 0
	return router.Hooks{
		Fix: func(_ *geofence.Fix, r geofence.Result) { results[r].Inc() },
		Judged: func(messages int, took time.Duration) {
			if messages > 0 {
				m.match.Observe(took.Seconds() / float64(messages))
			}
		},
		Transition: func(tr *geofence.Transition, _ int) {
			m.transitions[tr.Kind].Inc()
		},
		WhereFailed: func(consumer string, _ error) { m.whereFailures.WithLabelValues(consumer).Inc() },
		Committed: func(took time.Duration, _ int, err error) {
			if err == nil {
				m.commits.Observe(took.Seconds())
			}
		},
		ReaderRestarted: func(error) { restarts.Inc() },
	}
}

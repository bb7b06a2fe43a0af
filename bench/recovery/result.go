package main

import (
	"slices"
	"time"
)

// Result is what the command finds; it is what --json writes.
type Result struct {
	Seeds     int              `json:"seeds"`
	Scenarios []ScenarioResult `json:"scenarios"`
}

// ScenarioResult holds the policies' figures in one scenario.
type ScenarioResult struct {
	Name     string         `json:"name"`
	OutageS  float64        `json:"outage_s"`
	LivePerS float64        `json:"live_per_s"`
	Workers  int            `json:"workers"`
	Capacity float64        `json:"capacity_per_s"`
	Policies []PolicyResult `json:"policies"`
}

// PolicyResult sums up the runs of a policy over all seeds: the worst of each
// figure, unless it says otherwise. Durations are in seconds.
type PolicyResult struct {
	Name             string    `json:"name"`
	Retrips          int       `json:"retrips"`
	RetripsP50       int       `json:"retrips_p50"`
	FallsOver        int       `json:"falls_over"`
	FallsOverP50     int       `json:"falls_over_p50"`
	HealthyToClosed  Quantiles `json:"healthy_to_closed_s"`
	MaxProbes        int       `json:"max_probes_in_flight"`
	Timeouts         int       `json:"timeouts_after_healing"`
	SlowCalls        int       `json:"slow_calls"`
	SlowSeconds      int       `json:"slow_seconds"`
	Drain            float64   `json:"drain_s"`       // of the run that came closest to its bound, or exceeded it most
	DrainBound       float64   `json:"drain_bound_s"` // of the same run
	Parked           int       `json:"parked"`        // of the same run, at its last close
	Closes           Range     `json:"closes"`
	TripsPerMin      float64   `json:"trips_per_min"` // mean over the seeds
	Windows          []float64 `json:"windows_s"`     // of the first seed
	WindowOutOfRange int       `json:"windows_outside_jitter"`
}

// Quantiles are of the runs, not of the calls.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	Max float64 `json:"max"`
}

// Range holds the least and the most of the runs.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// sumUp turns the runs of a policy into its figures.
func sumUp(sc *scenario, name string, runs []*tally) PolicyResult {
	p := PolicyResult{Name: name, Closes: Range{Min: runs[0].closes}}
	var closed []time.Duration
	var retrips, falls []int
	worst := -1.0
	for _, t := range runs {
		closed = append(closed, t.closedAfter())
		retrips, falls = append(retrips, t.retrips), append(falls, len(t.fell))
		p.MaxProbes = max(p.MaxProbes, t.mostProbes)
		p.Timeouts = max(p.Timeouts, t.timeouts)
		p.SlowCalls = max(p.SlowCalls, t.slow)
		p.SlowSeconds = max(p.SlowSeconds, t.slowSecs)
		p.Closes.Min, p.Closes.Max = min(p.Closes.Min, t.closes), max(p.Closes.Max, t.closes)
		p.TripsPerMin += float64(t.retrips) / (t.end - t.heals).Minutes() / float64(len(runs))
		bound := 2*float64(t.parked)/(sc.capacity-sc.live) + 5
		if drain := t.drain().Seconds(); drain/bound > worst {
			worst, p.Drain, p.DrainBound, p.Parked = drain/bound, drain, bound, t.parked
		}
		p.WindowOutOfRange += outsideJitter(t.windows)
	}
	slices.Sort(closed)
	slices.Sort(retrips)
	slices.Sort(falls)
	last := len(runs) - 1
	p.HealthyToClosed = Quantiles{closed[last/2].Seconds(), closed[last*95/100].Seconds(), closed[last].Seconds()}
	p.Retrips, p.RetripsP50 = retrips[last], retrips[last/2]
	p.FallsOver, p.FallsOverP50 = falls[last], falls[last/2]
	for _, w := range runs[0].windows {
		p.Windows = append(p.Windows, w.Seconds())
	}
	return p
}

// outsideJitter counts the windows that are not 1, 2, 4, 8, 16, 30, 30 ... s
// within 20 %.
func outsideJitter(windows []time.Duration) int {
	n := 0
	for i, w := range windows {
		nominal := 30.0
		if i < 5 {
			nominal = float64(int(1) << i)
		}
		if s := w.Seconds(); s < 0.8*nominal-1e-6 || s > 1.2*nominal+1e-6 {
			n++
		}
	}
	return n
}

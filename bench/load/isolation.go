package main

import (
	"context"
	"fmt"
	"io"
)

const (
	healthyConsumers = 5
	isolationPairs   = 5
	// What may be lost to a consumer that hangs.
	leastThroughput = 0.95
	mostLatency     = 1.25
)

// side is one half of a pair.
type side struct {
	// Throughput is the share of the triggers that the healthy consumers had
	// got when the last fix was published.
	Throughput float64 `json:"throughput"`
	Latency    latency `json:"latency_ms"`
}

// pair is a run without and one with a consumer that hangs.
type pair struct {
	Without side `json:"without"`
	With    side `json:"with"`
}

// isolation is what --isolation found. The ratios are medians of the pairs'.
type isolation struct {
	Rate       float64 `json:"fixes_per_s"`
	Throughput float64 `json:"throughput_ratio"`
	P99        float64 `json:"p99_ratio"`
	Pairs      []pair  `json:"pairs"`
}

func healthy() []consumer {
	var all []consumer
	for i := range healthyConsumers {
		all = append(all, consumer{name: fmt.Sprintf("healthy%d", i+1), kind: kindWebhook})
	}
	return all
}

// runIsolation measures what five healthy consumers lose to one that hangs.
func runIsolation(ctx context.Context, o options, out, log io.Writer) error {
	r, err := newRig(ctx, setup{city: o.city(), durable: o.Mode != "core", consumers: healthy(), log: log})
	defer r.close()
	if err != nil {
		return err
	}
	if err := r.warm(ctx); err != nil {
		return err
	}
	full, err := r.saturateRouter(ctx, o.Time, false)
	if err != nil {
		return err
	}
	all := isolation{Rate: full.rate() / 2}
	fmt.Fprintf(out, "%d healthy webhooks at %.0f fixes/s, half of the maximum; without and with one that hangs\n\n", healthyConsumers, all.Rate)
	var throughputs, latencies []float64
	for n := range isolationPairs {
		var p pair
		halves := []bool{false, true}
		if n%2 == 1 { // what comes first has an advantage, or none
			halves = []bool{true, false}
		}
		for _, hung := range halves {
			half := &p.Without
			if hung {
				half = &p.With
			}
			if *half, err = r.isolated(ctx, o, all.Rate, hung); err != nil {
				return err
			}
		}
		all.Pairs = append(all.Pairs, p)
		throughputs = append(throughputs, p.With.Throughput/p.Without.Throughput)
		latencies = append(latencies, p.With.Latency.P99/p.Without.Latency.P99)
		fmt.Fprintf(out, "  pair %d: throughput %.3f and %.3f, p99 %.2f and %.2f ms\n",
			n+1, p.Without.Throughput, p.With.Throughput, p.Without.Latency.P99, p.With.Latency.P99)
	}
	all.Throughput, all.P99 = median(throughputs), median(latencies)
	fmt.Fprintf(out, "\n  throughput %.3f of that without (at least %.2f), p99 %.2f x (at most %.2f)\n",
		all.Throughput, leastThroughput, all.P99, mostLatency)
	return writeJSON(o.JSON, all)
}

// isolated measures the healthy consumers, with or without one that hangs. The
// router is started anew for it: what the devices did before is stored.
func (r *rig) isolated(ctx context.Context, o options, rate float64, hung bool) (side, error) {
	if err := r.stopRouter(ctx); err != nil {
		return side{}, err
	}
	r.consumers = healthy()
	if hung {
		r.consumers = append(r.consumers, consumer{name: "hung", kind: kindHang})
	}
	if err := r.startRouter(ctx); err != nil {
		return side{}, err
	}
	before, err := r.scrape(ctx)
	if err != nil {
		return side{}, err
	}
	p, err := r.pace(ctx, rate, o.Time)
	if err != nil {
		return side{}, err
	}
	after, err := r.scrape(ctx)
	if err != nil {
		return side{}, err
	}
	wanted := sum(after, "tripline_transitions_total") - sum(before, "tripline_transitions_total")
	return side{
		Throughput: float64(p.Prompt[everySink].Count) / (healthyConsumers * wanted),
		Latency:    p.Sinks[everySink],
	}, nil
}

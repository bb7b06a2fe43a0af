package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// mostHeap is how much more memory an outage may take.
const mostHeap = 1.5

// outageShare is the transitions per fix: many, because it is the triggers
// that count here.
const outageShare = 0.25

// outageRun is one run, with the consumer there or away. Sizes are MB.
type outageRun struct {
	PeakHeap float64 `json:"peak_heap_mb"`
	// HalfHeap is the peak of the first half alone: what comes after shows
	// whether the heap grows with the backlog.
	HalfHeap float64 `json:"peak_heap_first_half_mb"`
	RSS      float64 `json:"rss_mb"`
	Triggers float64 `json:"triggers"`
	Parked   float64 `json:"parked"`    // at the end
	ParkedMB float64 `json:"parked_mb"` // at the end, on disk
}

// outage is what --outage found.
type outage struct {
	PeakHeap  float64   `json:"peak_heap_mb"`
	Ratio     float64   `json:"ratio"` // of the peaks, with and without
	PerSecond float64   `json:"triggers_per_s"`
	Seconds   float64   `json:"seconds"`
	With      outageRun `json:"with"`
	Without   outageRun `json:"without"`
}

// runOutage compares the router's memory while one of two consumers is away
// with the same run while it is there. The NATS server runs inside the router,
// as it does by default: what it keeps in memory of the backlog counts.
//
// The triggers come at the real rate, and 1/scale of the outage is played.
func runOutage(ctx context.Context, o options, out, log io.Writer) error {
	o.Share = outageShare
	length := time.Duration(float64(o.Outage) / o.Scale)
	all := outage{PerSecond: o.Triggers, Seconds: length.Seconds()}
	fmt.Fprintf(out, "an outage of %v, %v of it played, at %.0f triggers/s for each of two webhooks\n\n", o.Outage, length, o.Triggers)
	for _, run := range []struct {
		name   string
		kind   string
		result *outageRun
	}{{"there", kindWebhook, &all.Without}, {"away", kindHang, &all.With}} {
		err := measureOutage(ctx, o, run.kind, length, run.result, log)
		if err != nil {
			return fmt.Errorf("with the consumer %s: %w", run.name, err)
		}
		m := run.result
		fmt.Fprintf(out, "  consumer %-6s peak heap %6.0f MB (first half %6.0f), resident %6.0f MB, %8.0f triggers, %8.0f parked (%.0f MB on disk)\n",
			run.name, m.PeakHeap, m.HalfHeap, m.RSS, m.Triggers, m.Parked, m.ParkedMB)
	}
	all.PeakHeap, all.Ratio = all.With.PeakHeap, all.With.PeakHeap/all.Without.PeakHeap
	fmt.Fprintf(out, "\n  peak heap %.2f x that without an outage (at most %.2f)\n", all.Ratio, mostHeap)
	return writeJSON(o.JSON, all)
}

func measureOutage(ctx context.Context, o options, kind string, length time.Duration, m *outageRun, log io.Writer) error {
	r, err := newRig(ctx, setup{
		city: o.city(), durable: true, embedded: true, log: log,
		consumers: []consumer{{name: "healthy", kind: kindWebhook}, {name: "sick", kind: kind}},
	})
	defer r.close()
	if err != nil {
		return err
	}
	if err := r.warm(ctx); err != nil {
		return err
	}
	before, err := r.scrape(ctx)
	if err != nil {
		return err
	}
	for _, peak := range []*float64{&m.HalfHeap, &m.PeakHeap} {
		if err := r.app.call(ctx, "peak", nil, nil); err != nil { // begins anew
			return err
		}
		if _, err := r.pace(ctx, o.Triggers/o.Share, length/2); err != nil {
			return err
		}
		var bytes float64
		if err := r.app.call(ctx, "peak", nil, &bytes); err != nil {
			return err
		}
		*peak = bytes / mib
	}
	m.PeakHeap = max(m.PeakHeap, m.HalfHeap)
	after, err := r.scrape(ctx)
	if err != nil {
		return err
	}
	m.Triggers = sum(after, "tripline_transitions_total") - sum(before, "tripline_transitions_total")
	m.Parked = after[`tripline_fallback_depth{consumer="sick"}`]
	m.ParkedMB = after[`tripline_fallback_bytes{consumer="sick"}`] / mib
	u, err := r.app.usage(ctx)
	m.RSS = float64(u.RSS) / mib
	return err
}

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
)

// modeResult is what one mode showed. Rates are fixes per second.
type modeResult struct {
	Ratio     float64 `json:"ratio"` // of the rates, as the median of the pairs
	FixesPerS float64 `json:"fixes_per_s"`
	PlainPerS float64 `json:"plain_per_s"`

	HalfRate float64            `json:"half_rate"`
	Latency  map[string]latency `json:"latency_ms"` // at half rate, by sink
	// PlainLatency is what a plain subscriber sees at the same rate.
	PlainLatency latency `json:"plain_latency_ms"`
	// Lost at half rate: published and never judged.
	Lost float64 `json:"lost"`

	// AllocsPerFix is what a fix without a transition allocates beyond what
	// the NATS client allocates for any message.
	AllocsPerFix float64 `json:"allocs_per_fix"`
	// AllocsAll counts everything, with the client, and the triggers at full
	// speed.
	AllocsAll   float64 `json:"allocs_per_fix_all"`
	AllocsPlain float64 `json:"allocs_per_message_plain"`

	CPUPerFix float64 `json:"cpu_us_per_fix"`
	CPUPlain  float64 `json:"cpu_us_per_message_plain"`
	// All processes together, and the ratio of the two: what the ratio of the
	// rates comes to where CPU is all that is short. Other load on the machine
	// disturbs it less.
	CPUAll      float64            `json:"cpu_us_per_fix_all_processes"`
	CPUAllPlain float64            `json:"cpu_us_per_message_plain_all_processes"`
	CPUOf       map[string]float64 `json:"cpu_us_per_fix_by_process"`
	CPUOfPlain  map[string]float64 `json:"cpu_us_per_message_plain_by_process"`
	CPURatio    float64            `json:"cpu_ratio"`
	Stages      map[string]float64 `json:"cpu_us_per_fix_by_stage"`

	Share    float64 `json:"transitions_per_fix"`
	Diverted float64 `json:"diverted"` // triggers that went to a fallback queue
	RSS      float64 `json:"rss_mb"`
	Start    float64 `json:"start_s"`
}

const mib = 1 << 20

// measureMode runs all measurements of a mode.
func measureMode(ctx context.Context, o options, durable bool, log io.Writer) (m modeResult, err error) {
	r, err := newRig(ctx, setup{city: o.city(), durable: durable, consumers: o.consumers(), log: log})
	defer r.close()
	if err != nil {
		return m, err
	}
	m.Start = r.startSeconds
	if err := r.warm(ctx); err != nil {
		return m, err
	}
	for _, step := range []func(context.Context, *rig, options) error{
		m.measureMaximum, m.measureStages, m.measureStill, m.measureLatency,
	} {
		if err := step(ctx, r, o); err != nil {
			return m, err
		}
	}
	u, err := r.readRouter(ctx)
	m.RSS = float64(u.RSS) / mib
	return m, err
}

// measureMaximum takes the yardstick and the router in turns.
func (m *modeResult) measureMaximum(ctx context.Context, r *rig, o options) error {
	var ratios, plains, ours, allocs, cpu, allocsPlain, cpuPlain, all, allPlain []float64
	var shares, sharesPlain []map[string]float64
	for range o.Rounds {
		p, err := r.saturatePlain(ctx, o.Time)
		if err != nil {
			return err
		}
		g, err := r.saturateRouter(ctx, o.Time, false)
		if err != nil {
			return err
		}
		if g.rate() == 0 || p.rate() == 0 {
			return fmt.Errorf("nothing was read within %v: the machine is too busy, or --time is too short", o.Time)
		}
		ratios = append(ratios, g.rate()/p.rate())
		plains, ours = append(plains, p.rate()), append(ours, g.rate())
		allocs, cpu = append(allocs, g.Allocs/g.Count), append(cpu, g.CPU/g.Count/1e3)
		allocsPlain, cpuPlain = append(allocsPlain, p.Allocs/p.Count), append(cpuPlain, p.CPU/p.Count/1e3)
		all, allPlain = append(all, g.cpu()), append(allPlain, p.cpu())
		shares, sharesPlain = append(shares, g.cpuOf()), append(sharesPlain, p.cpuOf())
	}
	m.Ratio, m.PlainPerS, m.FixesPerS = median(ratios), median(plains), median(ours)
	m.AllocsAll, m.CPUPerFix = median(allocs), median(cpu)
	m.AllocsPlain, m.CPUPlain = median(allocsPlain), median(cpuPlain)
	m.CPUAll, m.CPUAllPlain = median(all), median(allPlain)
	m.CPURatio = m.CPUAllPlain / m.CPUAll
	m.CPUOf, m.CPUOfPlain = medians(shares), medians(sharesPlain)
	series, err := r.scrape(ctx)
	if err != nil {
		return err
	}
	m.Share = sum(series, "tripline_transitions_total") / series[acceptedSeries]
	m.Diverted = sum(series, "tripline_diverted_total")
	return nil
}

// measureStages profiles the router at full speed.
func (m *modeResult) measureStages(ctx context.Context, r *rig, o options) error {
	if err := r.publisher.call(ctx, "go", r.routed(), nil); err != nil {
		return err
	}
	for _, c := range []*child{r.app, r.server} {
		if err := c.call(ctx, "profile", nil, nil); err != nil {
			return err
		}
	}
	before, err := r.readRouter(ctx)
	if err != nil {
		return err
	}
	if err := sleep(ctx, o.Time); err != nil {
		return err
	}
	after, err := r.readRouter(ctx)
	if err != nil {
		return err
	}
	var stages map[string]int64 // of the router, which is the last
	for _, c := range []*child{r.server, r.app} {
		stages = nil
		path := ""
		if o.Profile != "" {
			path = fmt.Sprintf("%s.%s.%s", o.Profile, map[bool]string{true: "durable", false: "core"}[r.durable], c.name)
		}
		if err := c.call(ctx, "stages", path, &stages); err != nil {
			return err
		}
	}
	fixes := since(before, after).Count
	m.Stages = map[string]float64{}
	for name, ns := range stages {
		m.Stages[name] = float64(ns) / fixes / 1e3
	}
	if err := r.publisher.call(ctx, "stop", nil, nil); err != nil {
		return err
	}
	return r.settle(ctx)
}

// measureStill counts what fixes allocate that make nothing happen.
func (m *modeResult) measureStill(ctx context.Context, r *rig, o options) error {
	g, err := r.saturateRouter(ctx, o.Time, true)
	if err != nil {
		return err
	}
	m.AllocsPerFix = max(0, g.Allocs/g.Count-m.AllocsPlain)
	return nil
}

// measureLatency publishes at half of the maximum.
func (m *modeResult) measureLatency(ctx context.Context, r *rig, o options) error {
	m.HalfRate = m.FixesPerS / 2
	if r.durable {
		// As many as it leaves by itself: presences are saved within 30 s.
		if err := r.trimmed(ctx, uint64(30*m.HalfRate)); err != nil {
			return err
		}
	}
	sinks := map[string][]latency{}
	var plain []latency
	for range o.Rounds {
		l, err := r.pacePlain(ctx, m.HalfRate, o.Time)
		if err != nil {
			return err
		}
		plain = append(plain, l)
		p, err := r.pace(ctx, m.HalfRate, o.Time)
		if err != nil {
			return err
		}
		m.Lost += float64(p.Sent.Fixes) - p.Judged
		delete(p.Sinks, everySink)
		for name, l := range p.Sinks {
			sinks[name] = append(sinks[name], l)
		}
	}
	m.Latency = map[string]latency{}
	for name, rounds := range sinks {
		m.Latency[name] = medianLatency(rounds)
	}
	m.PlainLatency = medianLatency(plain)
	return nil
}

// print writes the result for people.
func (m *modeResult) print(w io.Writer, mode string) {
	fmt.Fprintf(w, "%s\n", mode)
	fmt.Fprintf(w, "  router             %10.0f fixes/s\n", m.FixesPerS)
	fmt.Fprintf(w, "  plain subscriber   %10.0f messages/s\n", m.PlainPerS)
	fmt.Fprintf(w, "  ratio              %10.2f\n", m.Ratio)
	fmt.Fprintf(w, "  transitions        %10.2f %% of the fixes\n", 100*m.Share)
	for _, name := range slices.Sorted(maps.Keys(m.Latency)) {
		printLatency(w, "latency, "+name, m.Latency[name])
	}
	printLatency(w, "plain subscriber", m.PlainLatency)
	fmt.Fprintf(w, "    at %.0f fixes/s, from the time at which a fix was due; lost %.0f\n", m.HalfRate, m.Lost)
	fmt.Fprintf(w, "  allocations        %10.3f per fix without a transition, beyond the NATS client's\n", m.AllocsPerFix)
	fmt.Fprintf(w, "                     %10.3f per fix in all, %.3f of them the client's\n", m.AllocsAll, m.AllocsPlain)
	fmt.Fprintf(w, "  CPU                %10.2f us per fix (plain subscriber: %.2f)\n", m.CPUPerFix, m.CPUPlain)
	fmt.Fprintf(w, "    all processes    %10.2f us per fix (plain subscriber: %.2f, ratio %.2f)\n", m.CPUAll, m.CPUAllPlain, m.CPURatio)
	for _, name := range slices.Sorted(maps.Keys(m.CPUOf)) {
		fmt.Fprintf(w, "    %-17s%10.2f (%.2f)\n", name, m.CPUOf[name], m.CPUOfPlain[name])
	}
	fmt.Fprintf(w, "  of the router, by stage\n")
	byCost := slices.SortedFunc(maps.Keys(m.Stages), func(a, b string) int {
		return int(1e6 * (m.Stages[b] - m.Stages[a]))
	})
	for _, name := range byCost {
		fmt.Fprintf(w, "    %-19s%8.2f\n", name, m.Stages[name])
	}
	fmt.Fprintf(w, "  memory             %10.0f MB resident\n", m.RSS)
	fmt.Fprintf(w, "  start              %10.2f s\n", m.Start)
	fmt.Fprintf(w, "  diverted           %10.0f triggers\n\n", m.Diverted)
}

func printLatency(w io.Writer, what string, l latency) {
	fmt.Fprintf(w, "  %-19s p50 %6.2f  p99 %6.2f  p99.9 %6.2f  max %6.2f ms (%d)\n", what, l.P50, l.P99, l.P999, l.Max, l.Count)
}

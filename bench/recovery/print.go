package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// published are the figures that started this benchmark, for a 20 s outage.
var published = []string{
	"published: eager\t~7\t~5\t~42\t\t\t\t\t\t\t\t\t",
	"published: backoff+cap\t0\t0\t~4\t\t\t\t\t\t\t\t\t",
}

// writeTables writes one table for each scenario, and then the targets.
func writeTables(w io.Writer, res *Result) {
	fmt.Fprintf(w, "%d seeds; re-trips and falls: median/most; the other figures are the worst run's unless a column says otherwise; s = seconds.\n", res.Seeds)
	for i := range res.Scenarios {
		sc := &res.Scenarios[i]
		fmt.Fprintf(w, "\n%s (sick for %g s; live %g/s, %d workers, %g/s when warm)\n",
			sc.Name, sc.OutageS, sc.LivePerS, sc.Workers, sc.Capacity)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "policy\tre-trips\tfalls\tclosed p50\tp95\tmax\tprobes\ttimeouts\tslow\tslow s\tdrained\tparked\t")
		for _, p := range sc.Policies {
			fmt.Fprintf(t, "%s\t%d/%d\t%d/%d\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t%d\t%.1f\t%d\t\n", p.Name,
				p.RetripsP50, p.Retrips, p.FallsOverP50, p.FallsOver,
				p.HealthyToClosed.P50, p.HealthyToClosed.P95, p.HealthyToClosed.Max,
				p.MaxProbes, p.Timeouts, p.SlowCalls, p.SlowSeconds, p.Drain, p.Parked)
		}
		if sc.Name == headline {
			for _, row := range published {
				fmt.Fprintln(t, row)
			}
		}
		t.Flush()
		if sc.Name == headline {
			fmt.Fprint(w, remark)
		}
		if p := find(sc, "tripline"); p != nil {
			fmt.Fprintf(w, "tripline's windows with the first seed: %s s\n", seconds(p.Windows))
		}
	}
	fmt.Fprintln(w)
	if missed := missedTargets(res); len(missed) > 0 {
		fmt.Fprintf(w, "Targets missed:\n  %s\n", strings.Join(missed, "\n  "))
	} else {
		fmt.Fprintln(w, "All targets met.")
	}
}

const remark = `Where this differs from the published figures: a ladder alone cannot close 4 s after a 20 s outage, because
the fifth window, 16 s with 20 % jitter, began while the consumer was sick and has to end first; what bounds
it is one window, 36 s at most. Outside evidence (the hint) cuts that to the wait for two passing health
checks. And a cap on the probes alone re-trips: once closed, the whole backlog arrives at a cold consumer.
`

func seconds(windows []float64) string {
	var words []string
	for _, w := range windows {
		words = append(words, fmt.Sprintf("%.1f", w))
	}
	return strings.Join(words, " ")
}

func find(sc *ScenarioResult, policy string) *PolicyResult {
	for i := range sc.Policies {
		if sc.Policies[i].Name == policy {
			return &sc.Policies[i]
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/internal/app"
)

// tooLate is how late a machine can be before that trips breakers.
const tooLate = limit / 5

// watch shows how it goes, until all have recovered or ctx ends.
func (r *liveRun) watch(ctx context.Context, s app.Started) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var calm, shown time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-ticker.C:
			r.late = append(r.late, time.Since(due))
		}
		r.insider.look(s.Consumers())
		now := time.Since(r.began)
		views := r.views(ctx)
		if now-shown >= time.Second {
			shown = now
			r.line(progressLine(now, r.sc.outage, views))
		}
		for _, v := range views {
			if v.state != breaker.Closed || v.parked > 0 || now < r.sc.outage {
				calm = now
			}
		}
		if now-calm >= liveCalm {
			return
		}
	}
}

// view is what a policy looks like at a moment.
type view struct {
	name   string
	state  breaker.State
	parked int
}

func (r *liveRun) views(ctx context.Context) []view {
	var all []view
	for i, o := range r.outsiders {
		v := view{name: liveNames[i]}
		o.ask(ctx, func() { v.state, v.parked = o.s.current, o.s.outlet.parked })
		all = append(all, v)
	}
	r.insider.mu.Lock()
	defer r.insider.mu.Unlock()
	return append(all, view{liveNames[2], r.insider.tally.current, r.insider.parked})
}

func progressLine(now, heals time.Duration, views []view) string {
	word := "sick"
	if now >= heals {
		word = "healed"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%3.0f s, %s:", max(0, now.Seconds()), word)
	for _, v := range views {
		fmt.Fprintf(&b, "  %s %s, %d parked;", v.name, v.state, v.parked)
	}
	return strings.TrimSuffix(b.String(), ";")
}

// report prints what came of it. Everything has ended.
func (r *liveRun) report() {
	r.line("")
	end := time.Since(r.began)
	t := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\ttrips\tre-trips\tfalls\thealthy to closed, s\ttimeouts\tslow\tdrained after, s\tstill parked\t")
	row := func(name string, ta *tally, b *backend, parked int) {
		ta.end = end
		ta.fell = b.s.consumer.fellOver
		closed, drained := fmt.Sprintf("%.1f", ta.closedAfter().Seconds()), fmt.Sprintf("%.1f", ta.drain().Seconds())
		if ta.current != breaker.Closed {
			closed, drained = "not yet", "not yet"
		} else if ta.drainedAt < 0 {
			drained = "not yet"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%d\t%d\t%s\t%d\t\n",
			name, ta.trips, ta.retrips, len(ta.fell), closed, ta.timeouts, ta.slow, drained, parked)
	}
	for i, o := range r.outsiders {
		row(liveNames[i], &o.s.tally, r.backends[i], o.s.outlet.parked)
	}
	r.insider.mu.Lock()
	defer r.insider.mu.Unlock()
	row(liveNames[2], &r.insider.tally, r.backends[2], r.insider.parked)
	t.Flush()
	fmt.Fprintln(r.out, "Re-trips, falls, timeouts and slow calls are those after healing.")
	if len(r.late) > 0 {
		slices.Sort(r.late)
		late := r.late[len(r.late)*99/100]
		fmt.Fprintf(r.out, "This machine was up to %v late with what was due (99th percentile)", late.Round(time.Millisecond/10))
		if late > tooLate {
			fmt.Fprintf(r.out, ": with a limit of %v the figures say more about the machine than about the policies", limit)
		}
		fmt.Fprintln(r.out, ".")
	}
}

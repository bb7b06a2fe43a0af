package main

import (
	"context"
	"slices"
	"time"
)

// mark is how markers are answered where the router reads them.
func (r *rig) mark() string {
	if r.durable {
		return markSubmit
	}
	return markReply
}

// routed is a job for the router, counted one for the yardstick.
func (r *rig) routed() job { return job{Prefix: routedPrefix, Mark: r.mark()} }

func (r *rig) counted() job {
	j := job{Prefix: countedPrefix, Mark: markReply}
	if r.durable {
		j.Mark = markInside
	}
	return j
}

// warm has every device report once, so that all are known.
func (r *rig) warm(ctx context.Context) error {
	j := r.routed()
	j.Count = r.city.Devices
	if err := r.publisher.call(ctx, "go", j, nil); err != nil {
		return err
	}
	if err := r.publisher.call(ctx, "wait", nil, nil); err != nil {
		return err
	}
	return r.settle(ctx)
}

// full is what a run at full speed showed: of the reader, and the CPU time of
// the server, of the publisher and of those that take triggers.
type full struct {
	growth
	server, publisher, taker growth
}

// cpuOf is what each process needed for a message, in microseconds.
func (f full) cpuOf() map[string]float64 {
	of := map[string]float64{}
	for name, g := range map[string]growth{"reader": f.growth, "nats server": f.server, "publisher": f.publisher, "consumers": f.taker} {
		of[name] = g.CPU / f.Count / 1e3
	}
	return of
}

// cpu is what all processes together needed for a message, in microseconds.
func (f full) cpu() (sum float64) {
	for _, us := range f.cpuOf() {
		sum += us
	}
	return sum
}

// saturate publishes as fast as is read, and measures the reader over d, once
// it has read a part of what is on its way at any time: before, the server's
// work is not what is read.
func (r *rig) saturate(ctx context.Context, j job, d time.Duration, read func(context.Context) (usage, error)) (f full, err error) {
	first, err := read(ctx)
	if err != nil {
		return f, err
	}
	if err := r.publisher.call(ctx, "go", j, nil); err != nil {
		return f, err
	}
	readers := []func(context.Context) (usage, error){read, r.server.usage, r.publisher.usage, r.taker.usage}
	growths := []*growth{&f.growth, &f.server, &f.publisher, &f.taker}
	var before [4]usage
	for begun := time.Now(); before[0].Count < first.Count+maxMarkers/8*markEvery && time.Since(begun) < stalledAfter; {
		if err := sleep(ctx, d/5); err != nil {
			return f, err
		}
		for i, read := range readers {
			if before[i], err = read(ctx); err != nil {
				return f, err
			}
		}
	}
	if err := sleep(ctx, d); err != nil {
		return f, err
	}
	for i, read := range readers {
		after, err := read(ctx)
		if err != nil {
			return f, err
		}
		*growths[i] = since(before[i], after)
	}
	return f, r.publisher.call(ctx, "stop", nil, nil)
}

// usage is what a process has used so far.
func (c *child) usage(ctx context.Context) (u usage, err error) {
	return u, c.call(ctx, "read", nil, &u)
}

// saturateRouter measures the router, and waits until it is at rest again.
func (r *rig) saturateRouter(ctx context.Context, d time.Duration, still bool) (full, error) {
	j := r.routed()
	j.Still = still
	g, err := r.saturate(ctx, j, d, r.readRouter)
	if err != nil {
		return g, err
	}
	return g, r.settle(ctx)
}

// saturatePlain measures the yardstick.
func (r *rig) saturatePlain(ctx context.Context, d time.Duration) (g full, err error) {
	return g, r.withPlain(ctx, func() error {
		g, err = r.saturate(ctx, r.counted(), d, r.readPlain)
		return err
	})
}

// withPlain has the yardstick listen while do runs.
func (r *rig) withPlain(ctx context.Context, do func() error) error {
	listen := plainListen{Subject: countedPrefix + "*"}
	if r.durable {
		listen = plainListen{Stream: countedStream}
	}
	if err := r.plain.call(ctx, "listen", listen, nil); err != nil {
		return err
	}
	err := do()
	if e := r.plain.call(ctx, "leave", nil, nil); err == nil {
		err = e
	}
	if err == nil && r.durable {
		err = r.purgeCounted(ctx)
	}
	return err
}

// paced is what a run at a fixed rate showed.
type paced struct {
	Sent   sent
	Judged float64            // fixes that the router took
	Prompt map[string]latency // by consumer, when the last fix was published
	Sinks  map[string]latency // by consumer, at the end
}

// pace publishes to the router at a rate for d.
func (r *rig) pace(ctx context.Context, rate float64, d time.Duration) (p paced, err error) {
	before, err := r.scrape(ctx)
	if err != nil {
		return p, err
	}
	var s schedule
	j := r.routed()
	j.Rate, j.Count = rate, int(rate*d.Seconds())
	if err := r.publisher.call(ctx, "go", j, &s); err != nil {
		return p, err
	}
	if err := r.taker.call(ctx, "expect", s, nil); err != nil {
		return p, err
	}
	if err := r.publisher.call(ctx, "wait", nil, &p.Sent); err != nil {
		return p, err
	}
	if p.Prompt, err = r.taken(ctx); err != nil {
		return p, err
	}
	if err := r.settle(ctx); err != nil {
		return p, err
	}
	after, err := r.scrape(ctx)
	if err != nil {
		return p, err
	}
	p.Judged = sum(after, "tripline_fixes_total") - sum(before, "tripline_fixes_total")
	p.Sinks, err = r.taken(ctx)
	return p, err
}

// pacePlain publishes to the yardstick at a rate for d: what the machine and
// the server need by themselves.
func (r *rig) pacePlain(ctx context.Context, rate float64, d time.Duration) (l latency, err error) {
	return l, r.withPlain(ctx, func() error {
		var s schedule
		j := r.counted()
		j.Rate, j.Count = rate, int(rate*d.Seconds())
		if err := r.publisher.call(ctx, "go", j, &s); err != nil {
			return err
		}
		if err := r.plain.call(ctx, "expect", s, nil); err != nil {
			return err
		}
		if err := r.publisher.call(ctx, "wait", nil, nil); err != nil {
			return err
		}
		if err := sleep(ctx, quietFor); err != nil {
			return err
		}
		return r.plain.call(ctx, "latency", nil, &l)
	})
}

// worst is the consumer with the highest P99.
func worst(sinks map[string]latency) latency {
	var w latency
	for name, l := range sinks {
		if name != everySink && l.P99 >= w.P99 {
			w = l
		}
	}
	return w
}

// median of some figures; 0 if there are none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// medians takes the median of each figure over several rounds.
func medians(rounds []map[string]float64) map[string]float64 {
	all := map[string][]float64{}
	for _, round := range rounds {
		for name, v := range round {
			all[name] = append(all[name], v)
		}
	}
	out := map[string]float64{}
	for name, v := range all {
		out[name] = median(v)
	}
	return out
}

// medianLatency takes the median of each figure over several rounds.
func medianLatency(rounds []latency) latency {
	var out latency
	for _, f := range []func(*latency) *float64{
		func(l *latency) *float64 { return &l.P50 },
		func(l *latency) *float64 { return &l.P99 },
		func(l *latency) *float64 { return &l.P999 },
		func(l *latency) *float64 { return &l.Max },
	} {
		var v []float64
		for i := range rounds {
			v = append(v, *f(&rounds[i]))
		}
		*f(&out) = median(v)
	}
	for _, l := range rounds {
		out.Count += l.Count
	}
	return out
}

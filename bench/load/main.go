// Command load measures Tripline against the limit of its NATS server.
//
//	go run ./bench/load [--short] [--json FILE]
//
// NATS server, publisher, router and consumer are processes of their own. The
// publisher drives a seeded city; the yardstick is a plain nats.go subscriber
// (in durable mode: a plain ordered consumer) that does nothing but count, fed
// by the same publisher, in turns with the router.
//
//	--isolation   what a consumer that hangs costs five healthy ones
//	--outage 1h   memory while a consumer is away, --scale times as fast
//	--growth      what fences, devices and consumers cost as they become many
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	if name := os.Getenv(roleEnv); name != "" {
		signal.Ignore(os.Interrupt) // the parent's business
		if err := serve(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	Fences, Devices int
	Share           float64
	Seed            uint64
	Mode            string
	Sinks           []string
	Time            time.Duration
	Rounds          int
	JSON            string
	Profile         string
	Short           bool

	Isolation bool
	Outage    time.Duration
	Scale     float64
	Triggers  float64
	Growth    bool
	Sizes     string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("load", flag.ContinueOnError)
	f.IntVar(&o.Fences, "fences", 10_000, "fences of 20 vertices")
	f.IntVar(&o.Devices, "devices", 100_000, "devices, 1000 or more")
	f.Float64Var(&o.Share, "transitions", 0.005, "transitions per fix")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the city")
	f.StringVar(&o.Mode, "mode", "both", "core, durable or both")
	sinks := f.String("sinks", "nats,webhook", "sinks that get all triggers, with commas between")
	f.DurationVar(&o.Time, "time", 5*time.Second, "length of one measurement")
	f.IntVar(&o.Rounds, "rounds", 3, "measurements of which the median counts")
	f.StringVar(&o.JSON, "json", "", "file for the figures")
	f.StringVar(&o.Profile, "profile", "", "begins the names of files for CPU profiles, as in p.core.router")
	f.BoolVar(&o.Short, "short", false, "a few seconds, in a small city, for a first look")
	f.BoolVar(&o.Isolation, "isolation", false, "measure what a consumer that hangs costs the others")
	f.DurationVar(&o.Outage, "outage", 0, "measure the memory under an outage of this length")
	f.Float64Var(&o.Scale, "scale", 60, "how much faster than life the outage passes")
	f.Float64Var(&o.Triggers, "triggers", 2000, "triggers per second in the outage, for each consumer")
	f.BoolVar(&o.Growth, "growth", false, "measure how the costs grow with fences, devices and consumers")
	f.StringVar(&o.Sizes, "sizes", "", "rows of --growth, as in 100000x1000000x1 (fences, devices, consumers), with commas between; all if empty")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.Sinks = strings.Split(*sinks, ",")
	if o.Short {
		o.Fences, o.Devices = min(o.Fences, 500), min(o.Devices, 5000)
		o.Time, o.Rounds = min(o.Time, 500*time.Millisecond), 1
	}
	return o, o.check(f.NArg())
}

func (o options) check(rest int) error {
	switch {
	case rest > 0:
		return errors.New("there are only flags")
	case o.Fences < 1 || o.Devices < 1000:
		return errors.New("a city has at least 1 fence and 1000 devices")
	case o.Sizes != "" && !o.Growth:
		return errors.New("sizes are those of --growth")
	case o.Mode != "core" && o.Mode != "durable" && o.Mode != "both":
		return fmt.Errorf("mode %q; there are core, durable and both", o.Mode)
	case o.Time <= 0 || o.Rounds < 1 || o.Scale <= 0 || o.Triggers <= 0 || o.Outage < 0:
		return errors.New("time, rounds, scale and triggers are above 0")
	}
	if _, err := sizes(o); err != nil {
		return err
	}
	for _, s := range o.Sinks {
		if s != kindNATS && s != kindWebhook {
			return fmt.Errorf("sink %q; there are nats and webhook", s)
		}
	}
	return nil
}

func (o options) city() city {
	return city{Seed: o.Seed, Fences: o.Fences, Devices: o.Devices, Share: o.Share}
}

func (o options) consumers() []consumer {
	var all []consumer
	for _, s := range o.Sinks {
		all = append(all, consumer{name: s, kind: s})
	}
	return all
}

// run does what the flags ask for.
func run(ctx context.Context, o options, out, log io.Writer) error {
	fmt.Fprintf(out, "%s/%s, %s, %d CPUs%s\n\n", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), load())
	switch {
	case o.Isolation:
		return runIsolation(ctx, o, out, log)
	case o.Outage > 0:
		return runOutage(ctx, o, out, log)
	case o.Growth:
		return runGrowth(ctx, o, out, log)
	}
	return runModes(ctx, o, out, log)
}

// load says how busy the machine was before, where the system tells.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(data), " ")
	return ", load " + one
}

// result is what --json gets.
type result struct {
	Machine string      `json:"machine"`
	City    city        `json:"city"`
	Core    *modeResult `json:"core,omitempty"`
	Durable *modeResult `json:"durable,omitempty"`
	// Latency is that of the mode and sink with the highest P99.
	Latency latency `json:"latency_ms"`
	// Allocs is that of the mode with the most.
	Allocs float64 `json:"allocs_per_fix"`
}

func runModes(ctx context.Context, o options, out, log io.Writer) error {
	c := o.city()
	fmt.Fprintf(out, "%d fences of %d vertices, %d devices, a step of %.1f m from fix to fix\n\n", c.Fences, vertices, c.Devices, c.step())
	all := result{Machine: fmt.Sprintf("%s/%s %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), City: c}
	for _, mode := range []struct {
		name    string
		durable bool
		result  **modeResult
	}{{"core", false, &all.Core}, {"durable", true, &all.Durable}} {
		if o.Mode != "both" && o.Mode != mode.name {
			continue
		}
		m, err := measureMode(ctx, o, mode.durable, log)
		if err != nil {
			return fmt.Errorf("%s mode: %w", mode.name, err)
		}
		m.print(out, mode.name)
		*mode.result = &m
		all.Allocs = max(all.Allocs, m.AllocsPerFix)
		if l := worst(m.Latency); l.P99 >= all.Latency.P99 {
			all.Latency = l
		}
	}
	return writeJSON(o.JSON, all)
}

// writeJSON writes a result to a file, if one is named.
func writeJSON(path string, v any) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

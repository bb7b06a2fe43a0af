// Command chaos proves that nothing is lost and nothing is out of order: it
// runs the real router with a store on disk, publishes a fleet whose triggers
// are known, to consumers that are slow, fail, hang, drip and break
// connections off, kills the router again and again, and counts at the end
// what came.
//
//	go run ./bench/chaos --kills 20
//
// The exit code is 1 if anything was lost, out of order or unexpected.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(mainWithCode()) }

func mainWithCode() int {
	opts := options{Out: os.Stdout}
	var file string
	var short bool
	flag.IntVar(&opts.Kills, "kills", 20, "how often the router is killed")
	flag.Uint64Var(&opts.Seed, "seed", 0, "of all that is random; 0: another one each time")
	flag.IntVar(&opts.Devices, "devices", 300, "devices at a time")
	flag.Float64Var(&opts.Rate, "rate", 150, "messages per second")
	flag.DurationVar(&opts.Longest, "longest", 6*time.Second, "the longest life of the router between two kills")
	flag.DurationVar(&opts.Drain, "drain", 90*time.Second, "the longest wait for another trigger at the end")
	flag.BoolVar(&opts.External, "external", false, "with a NATS server in a process of its own, behind a proxy that makes faults")
	flag.IntVar(&opts.Replicas, "replicas", 1, "routers that share the work, over a cluster of NATS servers")
	flag.IntVar(&opts.NATS, "nats", 0, "servers of that cluster, which are killed too; 0: as many as there are routers")
	flag.BoolVar(&opts.Race, "race", false, "build the router with the race detector")
	flag.BoolVar(&opts.Keep, "keep", false, "keep the temporary folder, with the log of the router and its store")
	flag.StringVar(&opts.Router, "router", "", "a tripline binary to use; left out: it is built")
	flag.StringVar(&file, "json", "", "write the result to this file")
	flag.BoolVar(&short, "short", false, "2 kills in about 20 s")
	flag.Parse()
	if short {
		opts.shorten()
	}
	if opts.Replicas > 1 && opts.NATS == 0 {
		opts.NATS = opts.Replicas
	}
	if opts.Seed == 0 {
		opts.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	// SIGPIPE: whoever reads our output has gone; the rest has to be tidied up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()

	v, err := execute(ctx, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\n", opts.Seed, err)
		return 1
	}
	v.print(os.Stdout)
	if file != "" {
		if err := v.write(file); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			return 1
		}
	}
	if !v.ok() {
		return 1
	}
	return 0
}

// shorten makes a run end soon.
func (o *options) shorten() {
	o.Kills, o.Devices, o.Rate, o.Longest, o.Drain = 2, 100, 200, 3*time.Second, time.Minute
}

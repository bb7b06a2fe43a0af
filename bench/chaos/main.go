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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(command(context.Background(), os.Args[1:], os.Stdout)) }

// command is the whole program. It returns the exit code.
func command(ctx context.Context, args []string, out io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Whoever reads our output may go. That ends the run in order, by an error
	// of the write: as a signal it would not tell the output from a connection
	// to a router that was killed.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	opts := options{Out: &reader{out, stop}}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	var file string
	var short bool
	f.IntVar(&opts.Kills, "kills", 20, "how often the router is killed")
	f.Uint64Var(&opts.Seed, "seed", 0, "of all that is random; 0: another one each time")
	f.IntVar(&opts.Devices, "devices", 300, "devices at a time")
	f.Float64Var(&opts.Rate, "rate", 150, "messages per second")
	f.DurationVar(&opts.Longest, "longest", 6*time.Second, "the longest life of the router between two kills")
	f.DurationVar(&opts.Drain, "drain", 90*time.Second, "the longest wait for another trigger at the end")
	f.BoolVar(&opts.External, "external", false, "with a NATS server in a process of its own, behind a proxy that makes faults")
	f.IntVar(&opts.Replicas, "replicas", 1, "routers that share the work, over a cluster of NATS servers")
	f.IntVar(&opts.NATS, "nats", 0, "servers of that cluster, which are killed too; 0: as many as there are routers")
	f.BoolVar(&opts.Race, "race", false, "build the router with the race detector")
	f.BoolVar(&opts.Keep, "keep", false, "keep the temporary folder, with the log of the router and its store")
	f.StringVar(&opts.Router, "router", "", "a tripline binary to use; left out: it is built")
	f.StringVar(&file, "json", "", "write the result to this file")
	f.BoolVar(&short, "short", false, "2 kills in about 20 s")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // it has said why
	}
	if short {
		opts.shorten()
	}
	if opts.Replicas > 1 && opts.NATS == 0 {
		opts.NATS = opts.Replicas
	}
	if opts.Seed == 0 {
		opts.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	v, err := execute(ctx, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\n", opts.Seed, err)
		return 1
	}
	v.print(out)
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

// reader is who reads the output.
type reader struct {
	io.Writer
	gone func()
}

func (r *reader) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if err != nil {
		r.gone()
	}
	return n, err
}

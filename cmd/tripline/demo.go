package main

import (
	"errors"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/tripline/tripline/internal/demo"
)

type demoCmd struct {
	For     *time.Duration `placeholder:"DURATION" help:"End by itself after this time, as in 60s; without it, Ctrl-C ends it."`
	Seed    uint64         `default:"1" help:"Seed of the fleet's journeys."`
	Admin   string         `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Address of the live page; port 0 takes a free one."`
	Verbose bool           `short:"v" help:"Show the service's log as well."`
}

// Help is shown by --help.
func (*demoCmd) Help() string {
	return `Runs the whole of Tripline on this machine, with a NATS server inside: a city, a
fleet that drives through it, and three consumers. One of them falls sick after
10 s and heals 20 s later. At the end it counts what each consumer got, against
what it should have got; the exit code is 1 if anything is missing.

Example:

  tripline demo --for 60s`
}

// Run shows the demo.
func (c *demoCmd) Run(s streams) error {
	opts := demo.Options{Seed: c.Seed, Admin: c.Admin, Out: s.out, Version: buildVersion()}
	if c.For != nil {
		if *c.For <= 0 {
			return usageError{errors.New("--for is longer than 0s; leave it out to run until Ctrl-C")}
		}
		opts.For = *c.For
	}
	opts.Log = slog.New(slog.DiscardHandler)
	if c.Verbose {
		opts.Log = slog.New(slog.NewTextHandler(s.err, nil))
	}
	defer standardLog(opts.Log.Handler())()
	// Who reads the story may stop, as head does: the demo ends in order, and
	// is not killed with its store left behind.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	err := demo.Run(s.ctx, opts)
	if _, ok := errors.AsType[demo.AddressError](err); ok {
		return usageError{err}
	}
	return err
}

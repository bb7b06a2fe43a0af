// Command tripline routes what happens between moving devices and geofences
// to consumers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // fences have schedules, and small images no time zones

	"golang.org/x/term"
)

func main() { os.Exit(mainWithCode()) }

func mainWithCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(streams{
		ctx: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}, os.Args[1:])
}

// Command tripline routes what happens between moving devices and geofences
// to consumers.
package main

import (
	"context"
	"io"
	"log"
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
	log.SetOutput(io.Discard) // what libraries print by themselves; see standardLog
	is := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return run(streams{
		ctx: ctx, in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: is(os.Stderr), outTerminal: is(os.Stdout),
		colour: is(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		asks:   is(os.Stdin) && is(os.Stderr),
	}, os.Args[1:])
}

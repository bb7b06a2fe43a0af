package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tripline/tripline/internal/config"
)

// The exit codes, as the help says.
const (
	exitOK      = 0
	exitFailure = 1 // something could not be done
	exitUsage   = 2 // the command line, the configuration or a fence file is wrong
)

// streams is what a command has of the world outside.
type streams struct {
	ctx      context.Context // ends on Ctrl-C
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal
	// outTerminal and colour say how out is written to: whether it is a
	// terminal, and whether that wants colours.
	outTerminal, colour bool
	asks                bool // somebody can be asked: in and err are terminals
}

// cli is the command line.
type cli struct {
	Run     runCmd     `cmd:"" help:"Run the service."`
	Demo    demoCmd    `cmd:"" help:"Show Tripline at work: a city, a fleet, three consumers, one outage."`
	Check   checkCmd   `cmd:"" help:"Check a configuration and its fences, without connecting to anything."`
	Match   matchCmd   `cmd:"" help:"Print what recorded fixes would have triggered, without a server."`
	Send    sendCmd    `cmd:"" help:"Send one location and print what became of it."`
	Publish publishCmd `cmd:"" help:"Publish recorded fixes to NATS, with acknowledgements."`
	Reload  reloadCmd  `cmd:"" help:"Have the running service read its configuration again."`

	Consumers consumersCmd `cmd:"" help:"Show how the consumers are."`
	Tail      tailCmd      `cmd:"" help:"Print triggers as they happen."`
	Fallback  fallbackCmd  `cmd:"" help:"Look into what is parked, and remove it."`
	Dead      deadCmd      `cmd:"" help:"Look into the dead letters, send them again, remove them."`
	Devices   devicesCmd   `cmd:"" help:"Show a device, or forget it."`
	Fences    fencesCmd    `cmd:"" help:"List, add, remove and check fences."`
	Doctor    doctorCmd    `cmd:"" help:"Find out what is wrong, or could go wrong, with a set-up."`

	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version and how the program was built."`
}

const description = `Tripline matches the locations of moving devices against geofences and routes
what happens to consumers, each behind its own circuit breaker.

Exit codes: 0 done, 1 failed, 2 wrong command line, configuration or fence file.`

// errTold is a failure that has been printed already.
var errTold = errors.New("told")

// usageError makes a failure one of the command line's.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exit ends a parse early, as --help does; kong has no other way.
type exit int

// run is the program: it parses, runs one command, prints its error, and
// returns the exit code.
func run(s streams, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			early, ok := p.(exit)
			if !ok {
				panic(p)
			}
			code = int(early)
		}
	}()
	var c cli
	parser, err := kong.New(&c,
		kong.Name("tripline"), kong.Description(description),
		kong.Writers(s.out, s.err), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Bind(s),
	)
	if err != nil {
		panic(err) // the structs above are wrong: every test would see it
	}
	command, err := parser.Parse(spaced(args))
	if err != nil {
		return report(s, usageError{fmt.Errorf("%w (tripline --help tells more)", err)})
	}
	return report(s, command.Run())
}

// report prints an error and says which code it is.
func report(s streams, err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailure
	_, usage := errors.AsType[usageError](err)
	_, problems := errors.AsType[config.Problems](err)
	if usage || problems {
		code = exitUsage
	}
	if !errors.Is(err, errTold) {
		fmt.Fprintf(s.err, "tripline: %s\n", strings.TrimSpace(err.Error()))
	}
	return code
}

package main

import (
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/quiet"
)

type runCmd struct {
	Config string `short:"c" default:"tripline.yaml" placeholder:"FILE" help:"Configuration."`
}

// Help is shown by --help.
func (*runCmd) Help() string {
	return `Runs the service until Ctrl-C or SIGTERM. Then nothing new is read, what is in
memory is delivered or parked, progress is saved, and the exit code is 0.
SIGHUP reads the consumers from the configuration again.

Example:

  tripline run -c tripline.yaml`
}

// Run runs the service.
func (c *runCmd) Run(s streams) error {
	cfg, err := c.load()
	if err != nil {
		return usageError{err}
	}
	lines := quiet.New(newHandler(cfg.Log, s.err))
	defer lines.Close()
	log := slog.New(lines)
	for _, w := range cfg.Warnings {
		log.Warn(w.OneLine())
	}
	defer standardLog(lines)()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	err = app.Run(s.ctx, cfg, app.Options{
		Version: buildVersion(), Log: log, Reload: c.reload, Hangup: hangup,
	})
	if _, ok := errors.AsType[app.FenceError](err); ok {
		return usageError{err}
	}
	return err
}

// load reads the configuration, with what only the router can check.
func (c *runCmd) load() (*config.Config, error) {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return nil, err
	}
	if problems := checkMatches(cfg); len(problems) > 0 {
		return nil, problems
	}
	return cfg, nil
}

// reload is load for a service that runs: what is wrong goes into its log, on
// one line.
func (c *runCmd) reload() (*config.Config, error) {
	cfg, err := c.load()
	if problems, ok := errors.AsType[config.Problems](err); ok {
		return nil, errors.New(problems.OneLine())
	}
	return cfg, err
}

// standardLog sends what libraries print to the standard log, as net/http does
// of a server that answers unasked, through our own. What it returns undoes
// that.
func standardLog(h slog.Handler) (restore func()) {
	out, flags := stdlog.Writer(), stdlog.Flags()
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(h, slog.LevelWarn).Writer())
	return func() {
		stdlog.SetOutput(out)
		stdlog.SetFlags(flags)
	}
}

func newHandler(c config.Log, out io.Writer) slog.Handler {
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(fmt.Sprintf("log level %q passed the configuration's check", c.Level))
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.NewJSONHandler(out, opts)
	}
	return slog.NewTextHandler(out, opts)
}

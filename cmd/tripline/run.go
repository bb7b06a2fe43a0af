package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
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
	log := newLogger(cfg.Log, s.err)
	for _, w := range cfg.Warnings {
		log.Warn(w.Error())
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	return app.Run(s.ctx, cfg, app.Options{
		Version: buildVersion(), Log: log, Reload: c.load, Hangup: hangup,
	})
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

func newLogger(c config.Log, out io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		panic(fmt.Sprintf("log level %q passed the configuration's check", c.Level))
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}

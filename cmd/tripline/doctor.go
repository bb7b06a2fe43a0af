package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

type doctorCmd struct {
	Config  string        `short:"c" default:"tripline.yaml" placeholder:"FILE" help:"Configuration."`
	Timeout time.Duration `default:"5s" help:"How long each thing that is asked may take."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (*doctorCmd) Help() string {
	return `Looks at the configuration, the NATS server and its settings that can lose data,
the streams, the clocks, whether the consumers can be reached, and the running
service, if there is one. It changes nothing and delivers nothing: consumers are
connected to, or asked at their health URL.

Each line says ok, warn or fail, and what to change. Exit code 1 means that
something failed.

Example:

  tripline doctor -c tripline.yaml`
}

// finding is one thing that was looked at.
type finding struct {
	Level string `json:"level"` // ok, warn or fail
	What  string `json:"what"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what to change
}

// The levels of a finding.
const (
	levelOK   = "ok"
	levelWarn = "warn"
	levelFail = "fail"
)

// doctor gathers findings.
type doctor struct {
	cfg     *config.Config
	timeout time.Duration
	found   []finding
}

func (d *doctor) ok(what, format string, args ...any) {
	d.found = append(d.found, finding{Level: levelOK, What: what, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(what, do, format string, args ...any) {
	d.found = append(d.found, finding{levelWarn, what, fmt.Sprintf(format, args...), do})
}

func (d *doctor) fail(what, do, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // of joined errors
	d.found = append(d.found, finding{levelFail, what, text, do})
}

// Run looks at everything and prints what it found.
func (c *doctorCmd) Run(s streams) error {
	if c.Timeout <= 0 {
		return usageError{errors.New("--timeout is longer than 0s")}
	}
	d := &doctor{timeout: c.Timeout}
	if d.readConfig(c.Config) {
		d.lookAtNATS(s.ctx)
		d.lookAtConsumers(s.ctx)
		d.lookAtService(s.ctx)
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err := d.print(s, c.JSON); err != nil {
		return err
	}
	for _, f := range d.found {
		if f.Level == levelFail {
			return errTold
		}
	}
	return nil
}

// readConfig tells whether there is one that can be used.
func (d *doctor) readConfig(file string) bool {
	const what = "config"
	cfg, err := config.Load(file)
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			d.fail(what, "tripline check shows the line", "%s: %s", p.Place, p.Message)
		}
		return false
	}
	if err != nil {
		d.fail(what, "", "%v", err)
		return false
	}
	d.cfg = cfg
	problems := checkMatches(cfg)
	for _, p := range problems {
		d.fail(what, "correct the match", "%s: %s", p.Place, p.Message)
	}
	for _, w := range cfg.Warnings {
		d.warn(what, "", "%s: %s", w.Place, w.Message)
	}
	var files []string
	for _, f := range cfg.Fences {
		if f.File != "" {
			files = append(files, f.File)
		}
	}
	fences, err := app.LoadFences(files)
	if err != nil {
		for _, err := range flatten(err) {
			d.fail("fences", "correct the file", "%v", err)
		}
	} else {
		d.ok("fences", "%s in %s", plural(len(fences), "fence"), plural(len(files), "file"))
		for _, w := range idleGlobs(cfg, fences) {
			d.warn(what, "", "%s: %s", w.Place, w.Message)
		}
	}
	if len(problems) == 0 {
		d.ok(what, "%s: %s", file, plural(len(cfg.Consumers), "consumer"))
	}
	return len(problems) == 0
}

// within bounds what is asked.
func (d *doctor) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.timeout)
}

func (d *doctor) print(s streams, asJSON bool) error {
	if asJSON {
		raw, err := json.Marshal(map[string]any{"findings": d.found})
		return orJSON(s, raw, err)
	}
	looks := map[string]style{levelOK: green, levelWarn: yellow, levelFail: red}
	counts := map[string]int{}
	for _, f := range d.found {
		counts[f.Level]++
		if _, err := fmt.Fprintf(s.out, "%s  %-10s %s\n", paint(s.colour, looks[f.Level], fmt.Sprintf("%-4s", f.Level)), f.What, f.Text); err != nil {
			return err
		}
		if f.Do != "" {
			fmt.Fprintf(s.out, "      %-10s %s\n", "", paint(s.colour, faint, f.Do))
		}
	}
	_, err := fmt.Fprintf(s.out, "\n%d ok, %d warn, %d fail\n", counts[levelOK], counts[levelWarn], counts[levelFail])
	return err
}

// timedOut says that an error is a deadline's.
func timedOut(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

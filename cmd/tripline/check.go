package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/router"
)

type checkCmd struct {
	Config string `short:"c" default:"tripline.yaml" placeholder:"FILE" help:"Configuration."`
	JSON   bool   `name:"json" help:"Print JSON: ok, problems and warnings."`
}

// Help is shown by --help.
func (*checkCmd) Help() string {
	return `Reads the configuration, the secrets and the fence files that it names, and
tells all that is wrong with file, line and column. Warnings don't fail it.

Example:

  tripline check -c tripline.yaml`
}

// Run checks the file.
func (c *checkCmd) Run(s streams) error {
	cfg, fences, err := c.read()
	var warnings config.Problems
	if err == nil {
		warnings = slices.Concat(cfg.Warnings, noFences(cfg, fences), idleGlobs(cfg, fences))
	}
	switch {
	case c.JSON:
		return c.printJSON(s, err, warnings)
	case err != nil:
		return usageError{err}
	}
	for _, w := range warnings {
		fmt.Fprintf(s.err, "warning: %v\n", w)
	}
	printSummary(s.out, c.Config, cfg, len(fences), len(warnings))
	return nil
}

// read reads the configuration and its fences, and says all that is wrong.
func (c *checkCmd) read() (*config.Config, []*geofence.Fence, error) {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return nil, nil, err
	}
	var files []string
	for _, f := range cfg.Fences {
		if f.File != "" {
			files = append(files, f.File)
		}
	}
	fences, fenceErr := app.LoadFences(files)
	var errs []error
	if problems := checkMatches(cfg); len(problems) > 0 {
		errs = append(errs, problems)
	}
	return cfg, fences, errors.Join(append(errs, fenceErr)...)
}

// remark is a problem or a warning as JSON. Of a fence file only the message
// is there; it begins with the place.
type remark struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

// printJSON prints what was found; a problem is in it, and in the exit code.
func (c *checkCmd) printJSON(s streams, err error, warnings config.Problems) error {
	raw, encoding := json.Marshal(struct {
		OK       bool     `json:"ok"`
		Problems []remark `json:"problems"`
		Warnings []remark `json:"warnings"`
	}{err == nil, remarks(err), remarks(warnings)})
	if printing := orJSON(s, raw, encoding); printing != nil {
		return printing
	}
	if err != nil {
		return usageError{errTold}
	}
	return nil
}

// remarks takes joined errors apart, however deep.
func remarks(err error) []remark {
	list := []remark{}
	for _, err := range flatten(err) {
		switch e := err.(type) {
		case config.Problem:
			list = append(list, remark{e.File, e.Line, e.Column, e.Path, e.Message})
		case interface{ Unwrap() []error }:
			list = append(list, remarks(err)...)
		default:
			list = append(list, remark{Message: err.Error()})
		}
	}
	return list
}

// checkMatches compiles each match, for what only the router knows.
func checkMatches(cfg *config.Config) config.Problems {
	var problems config.Problems
	for _, k := range cfg.Consumers {
		_, err := app.CompileMatch(k)
		for _, err := range flatten(err) {
			path, msg := k.Path+".match", err.Error()
			if bad, ok := errors.AsType[*router.MatchError](err); ok {
				path, msg = k.Match[bad.Entry].Path+"."+config.Path(bad.Key), bad.Msg
				if bad.Line > 0 {
					msg = fmt.Sprintf("line %d, character %d: %s", bad.Line, bad.Col, bad.Msg)
				}
			}
			problems = append(problems, cfg.Problem(path, "%s: %s", path, msg))
		}
	}
	return problems
}

// flatten takes joined errors apart; nil has none.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// noFences warns of files that hold none.
func noFences(cfg *config.Config, fences []*geofence.Fence) config.Problems {
	kv := slices.ContainsFunc(cfg.Fences, func(f config.FenceSource) bool { return f.KV })
	if kv || len(cfg.Fences) == 0 || len(fences) > 0 {
		return nil
	}
	return config.Problems{cfg.Problem("fences", "fences: there is no fence in these files: nothing can be entered")}
}

// idleGlobs warns of patterns for fences and tags that fit none. Fences that
// come from the bucket are not known here, so with them there is no warning.
func idleGlobs(cfg *config.Config, fences []*geofence.Fence) config.Problems {
	if slices.ContainsFunc(cfg.Fences, func(f config.FenceSource) bool { return f.KV }) {
		return nil
	}
	var problems config.Problems
	for _, k := range cfg.Consumers {
		for _, m := range k.Match {
			for i, g := range m.Fences {
				if !fits(router.MatchConfig{Fences: []string{g}}, fences) {
					path := m.Path + ".fences" + index(i)
					problems = append(problems, cfg.Problem(path, "%s: no fence has an id like %q", path, g))
				}
			}
			for i, g := range m.Tags {
				if !fits(router.MatchConfig{Tags: []string{g}}, fences) {
					path := m.Path + ".tags" + index(i)
					problems = append(problems, cfg.Problem(path, "%s: no fence has a tag like %q", path, g))
				}
			}
		}
	}
	return problems
}

func index(i int) config.Path { return config.Path(fmt.Sprintf("[%d]", i)) }

func fits(mc router.MatchConfig, fences []*geofence.Fence) bool {
	m, err := router.CompileMatch(mc)
	if err != nil {
		return true // told elsewhere
	}
	return slices.ContainsFunc(fences, func(f *geofence.Fence) bool {
		_, ok := m.Accept(&geofence.Transition{Kind: geofence.Enter, Fence: f})
		return ok
	})
}

func printSummary(out io.Writer, file string, cfg *config.Config, fences, warnings int) {
	ok := "ok"
	if warnings > 0 {
		ok += ", with " + plural(warnings, "warning")
	}
	fmt.Fprintf(out, "%s: %s\n", file, ok)
	if cfg.NATS.Embedded() {
		fmt.Fprintf(out, "  nats       embedded on %s, store %s\n", cfg.NATS.Listen, cfg.NATS.StoreDir)
	} else {
		fmt.Fprintf(out, "  nats       %s\n", cfg.NATS.URL)
	}
	mode := "durable"
	if !cfg.Ingest.Durable {
		mode = "core (at most once)"
	}
	fmt.Fprintf(out, "  ingest     %s, %s, %s\n", mode, strings.Join(cfg.Ingest.Subjects, " "), plural(cfg.Ingest.Partitions, "partition"))
	sources := plural(fences, "fence") + " in files"
	if slices.ContainsFunc(cfg.Fences, func(f config.FenceSource) bool { return f.KV }) {
		sources += ", and the bucket " + strings.ToUpper(cfg.NATS.Namespace) + "_FENCES"
	}
	fmt.Fprintf(out, "  fences     %s\n", sources)
	for _, k := range cfg.Consumers {
		fmt.Fprintf(out, "  consumer   %s: %s, p99 %v, timeout %v, on_full %s\n", k.Name, target(k), k.Breaker.P99, k.Timeout, k.Fallback.OnFull)
	}
	fmt.Fprintf(out, "  admin      http://%s/\n", cfg.Admin.Listen)
}

// target is where a consumer's triggers go, without secrets.
func target(k config.Consumer) string {
	switch {
	case k.Webhook != nil:
		return "webhook " + k.Webhook.URL.String()
	case k.NATS != nil:
		return "nats " + k.NATS.Subject
	case k.Request != nil:
		return "request " + k.Request.Subject
	}
	return "jetstream " + k.JetStream.Subject
}

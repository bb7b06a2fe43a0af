package main

import (
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
	cfg, err := config.Load(c.Config)
	if err != nil {
		return usageError{err}
	}
	var files []string
	for _, f := range cfg.Fences {
		if f.File != "" {
			files = append(files, f.File)
		}
	}
	fences, fenceErr := app.LoadFences(files)
	problems := checkMatches(cfg)
	if fenceErr != nil || len(problems) > 0 {
		var errs []error
		if len(problems) > 0 {
			errs = append(errs, problems)
		}
		return usageError{errors.Join(append(errs, fenceErr)...)}
	}
	warnings := slices.Concat(cfg.Warnings, noFences(cfg, fences), idleGlobs(cfg, fences))
	for _, w := range warnings {
		fmt.Fprintf(s.err, "warning: %v\n", w)
	}
	printSummary(s.out, c.Config, cfg, len(fences), len(warnings))
	return nil
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

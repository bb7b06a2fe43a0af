package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when a release is built; otherwise the build knows.
var version = ""

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (*versionCmd) Help() string { return "Example:\n\n  tripline version" }

// Run prints one line that a bug report can quote.
func (c *versionCmd) Run(s streams) error {
	if c.JSON {
		raw, err := json.Marshal(map[string]string{
			"version": buildVersion(), "os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version(),
		})
		return orJSON(s, raw, err)
	}
	_, err := fmt.Fprintf(s.out, "tripline %s %s/%s %s\n", buildVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

// buildVersion is the release, or the commit that was built.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	var commit, date, dirty string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			date = " " + s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	switch {
	case commit != "":
		return "dev-" + commit + dirty + date
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "dev"
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tripline/tripline/internal/app"
)

type fencesCmd struct {
	Ls    fencesLsCmd    `cmd:"" help:"List the fences of the running service."`
	Put   fencesPutCmd   `cmd:"" help:"Add or replace fences, from a GeoJSON file."`
	Rm    fencesRmCmd    `cmd:"" help:"Remove a fence."`
	Check fencesCheckCmd `cmd:"" help:"Check a fence file, without a service."`
}

// Help is shown by --help.
func (*fencesCmd) Help() string {
	return `Fences that change at run time need {kv: true} under fences: in the
configuration; those from files are changed there.

Examples:

  tripline fences ls
  tripline fences check city.geojson
  tripline fences put depot.geojson
  tripline fences rm depot-north --yes`
}

type fencesLsCmd struct{ operator }

// Run lists.
func (c *fencesLsCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	set, raw, err := get[struct {
		Features []struct {
			ID         string
			Geometry   struct{ Type string }
			Properties struct {
				Name, Source string
				Tags         []string
			}
		}
	}](s.ctx, svc, "/fences", nil)
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	if len(set.Features) == 0 {
		_, err := fmt.Fprintln(s.out, "no fences")
		return err
	}
	t := newTable(s.colour, "ID", "NAME", "GEOMETRY", "SOURCE", "TAGS")
	for _, f := range set.Features {
		t.add(f.ID, f.Properties.Name, f.Geometry.Type, f.Properties.Source, strings.Join(f.Properties.Tags, " "))
	}
	return t.write(s.out)
}

type fencesPutCmd struct {
	File string `arg:"" type:"existingfile" help:"A Feature or FeatureCollection."`
	operator
}

// Help is shown by --help.
func (*fencesPutCmd) Help() string {
	return `The whole file is checked before anything is sent. Then its fences are put one
after the other; an error says how many were.

Example:

  tripline fences put depot.geojson`
}

// Run checks the file and sends its fences.
func (c *fencesPutCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	fences, err := app.LoadFences([]string{c.File})
	if err != nil {
		return usageError{err}
	}
	answers := make([]json.RawMessage, 0, len(fences))
	for i, f := range fences {
		feature, err := f.MarshalFeature()
		if err != nil {
			return fmt.Errorf("fence %s: %w", f.ID, err)
		}
		raw, err := svc.ask(s.ctx, request{method: http.MethodPut, path: at("fences", f.ID), body: feature})
		if err != nil {
			return fmt.Errorf("fence %s, after %d of %d: %w", f.ID, i, len(fences), err)
		}
		answers = append(answers, raw)
	}
	if c.JSON {
		raw, err := json.Marshal(answers)
		return orJSON(s, raw, err)
	}
	_, err = fmt.Fprintf(s.out, "put %s\n", plural(len(fences), "fence"))
	return err
}

type fencesRmCmd struct {
	ID string `arg:"" name:"id" help:"Fence id."`
	confirmed
	operator
}

// Run asks, then removes.
func (c *fencesRmCmd) Run(s streams) error {
	svc, err := c.service()
	if err != nil {
		return err
	}
	if err := c.confirm(s, fmt.Sprintf("Remove fence %s? Devices inside leave it at once.", c.ID)); err != nil {
		return err
	}
	raw, err := svc.ask(s.ctx, request{method: http.MethodDelete, path: at("fences", c.ID)})
	if err != nil || c.JSON {
		return orJSON(s, raw, err)
	}
	_, err = fmt.Fprintf(s.out, "removed fence %s\n", c.ID)
	return err
}

type fencesCheckCmd struct {
	Files []string `arg:"" name:"file" help:"Fence files; ids are compared across them."`
	JSON  bool     `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (*fencesCheckCmd) Help() string {
	return `Exit code 2 means that a file is wrong; the error names fence and place.

Example:

  tripline fences check city.geojson more.geojson`
}

// Run reads the files as the service would.
func (c *fencesCheckCmd) Run(s streams) error {
	fences, err := app.LoadFences(c.Files)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		_, err := fmt.Fprintf(s.out, "{\n  \"ok\": true,\n  \"fences\": %s\n}\n", strconv.Itoa(len(fences)))
		return err
	}
	_, err = fmt.Fprintf(s.out, "ok: %s\n", plural(len(fences), "fence"))
	return err
}

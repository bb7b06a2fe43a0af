package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/tracks"
)

type matchCmd struct {
	Fences []string `required:"" sep:"none" placeholder:"FILE" help:"Fence files (GeoJSON); may be given several times."`
	More   []string `arg:"" optional:"" name:"fences" help:"Further fence files."`
	Fixes  []string `required:"" sep:"none" placeholder:"FILE" help:"Recorded fixes: CSV (device,ts,lat,lon[,accuracy,speed,heading,alt]), NDJSON or GPX, also gzipped; - is standard input. May be given several times."`
	On     []string `default:"enter,exit" placeholder:"KIND" help:"Kinds to print: enter, exit, dwell, cross, inside, silent."`
	Config string   `short:"c" placeholder:"FILE" help:"Take the rules under tracking: from this configuration."`

	Device     string `help:"Device of rows that name none."`
	TrackNames bool   `help:"Take the names of a GPX file's tracks as devices, not the file's name."`
	SkipBad    bool   `help:"Pass over rows that are no fix, and count them, instead of stopping at the first."`
	JSON       bool   `name:"json" help:"Print a JSON object a line, with the same names."`
}

// Help is shown by --help.
func (*matchCmd) Help() string {
	return `Prints CSV with the columns device,ts,fence,event in the order in which the
transitions would have happened. ts stands as it does in the input where a fix
decided, else in RFC 3339.

Examples:

  tripline match --fences city.geojson --fixes history.csv.gz
  tripline match --fences city.geojson --fixes ride.gpx --on enter,exit,dwell,cross`
}

var kindNames = map[string]geofence.Kind{
	"enter": geofence.Enter, "exit": geofence.Exit, "dwell": geofence.Dwell,
	"cross": geofence.Cross, "inside": geofence.Inside, "silent": geofence.Silent,
}

// Run replays the fixes.
func (c *matchCmd) Run(s streams) error {
	m := &matcher{out: bufio.NewWriterSize(s.out, 1<<16), skipBad: c.SkipBad, json: c.JSON, warn: s.err}
	for _, name := range c.On {
		k, ok := kindNames[strings.TrimSpace(name)]
		if !ok {
			return usageError{fmt.Errorf("--on %s: the kinds are enter, exit, dwell, cross, inside, silent", name)}
		}
		m.on[k] = true
	}
	rules, err := c.rules(m)
	if err != nil {
		return err
	}
	fences, err := app.LoadFences(append(c.Fences, c.More...))
	if err != nil {
		return usageError{err}
	}
	index, err := geofence.NewIndex(fences...)
	if err != nil {
		return usageError{err}
	}
	m.tracker = geofence.NewTracker(index, rules)
	m.names()
	if !c.JSON {
		io.WriteString(m.out, "device,ts,fence,event\n")
	}
	opts := tracks.Options{Device: c.Device, TrackNames: c.TrackNames, Stdin: s.in}
	for _, file := range c.Fixes {
		if err := m.replay(s, file, opts); err != nil {
			return errors.Join(err, m.out.Flush())
		}
	}
	m.summary()
	return m.out.Flush()
}

// rules are those of the configuration, if there is one.
func (c *matchCmd) rules(m *matcher) (geofence.Config, error) {
	var tracking config.Tracking
	if c.Config != "" {
		cfg, err := config.Load(c.Config)
		if err != nil {
			return geofence.Config{}, usageError{err}
		}
		tracking = cfg.Tracking
	}
	rules := app.TrackerConfig(tracking)
	rules.Cross, rules.Inside = m.on[geofence.Cross], m.on[geofence.Inside]
	return rules, nil
}

// matcher replays fixes and prints what they trigger.
type matcher struct {
	tracker *geofence.Tracker
	on      [geofence.Silent + 1]bool
	kinds   [geofence.Silent + 1]string
	out     *bufio.Writer
	warn    io.Writer
	skipBad bool
	json    bool

	clock   int64 // stream time of the replay: the newest ts so far, never ahead of today
	fixes   int
	bad     int
	results [geofence.Teleport + 1]int
	found   []geofence.Transition
	scratch []byte
}

func (m *matcher) names() {
	for name, k := range kindNames {
		m.kinds[k] = name
	}
}

func (m *matcher) replay(s streams, file string, o tracks.Options) error {
	r, err := tracks.Open(file, o)
	if err != nil {
		return err
	}
	defer r.Close()
	today := time.Now().UnixMilli()
	for {
		row, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if _, isRow := errors.AsType[*tracks.RowError](err); !isRow || !m.skipBad {
				return err
			}
			m.bad++
			continue
		}
		if m.fixes++; m.fixes%4096 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		m.judge(row, today)
	}
}

// judge moves the clock to a fix, then asks the tracker. A recording has no
// time of arrival: a fix is taken to have arrived when it was made, or, if
// the recording has been further already, at once.
func (m *matcher) judge(row *tracks.Row, today int64) {
	m.clock = max(m.clock, min(row.Fix.TS, today))
	row.Fix.Stored, row.Fix.Seq = m.clock, uint64(m.fixes)
	m.found = m.tracker.Advance(m.clock, m.found[:0])
	m.print(row)
	var result geofence.Result
	m.found, result = m.tracker.Track(&row.Fix, m.clock, m.found[:0])
	m.results[result]++
	m.print(row)
}

// print writes the transitions that were found, of the kinds asked for.
func (m *matcher) print(row *tracks.Row) {
	for i := range m.found {
		t := &m.found[i]
		if !m.on[t.Kind] {
			continue
		}
		fence := ""
		if t.Fence != nil {
			fence = t.Fence.ID
		}
		line := appendCSVLine
		if m.json {
			line = appendJSONLine
		}
		m.scratch = line(m.scratch[:0], t.Device, timeOf(t, row), fence, m.kinds[t.Kind])
		m.out.Write(m.scratch) // an error stays with the writer until the flush
	}
}

// timeOf is the ts as it stands in the input where this fix decided.
func timeOf(t *geofence.Transition, row *tracks.Row) string {
	if t.At == row.Fix.TS && t.Device == row.Fix.Device && t.Fix.Seq == row.Fix.Seq {
		return string(row.TS)
	}
	layout := time.RFC3339
	if t.At%1000 != 0 {
		layout = "2006-01-02T15:04:05.000Z07:00"
	}
	return time.UnixMilli(t.At).UTC().Format(layout)
}

func appendJSONLine(b []byte, device, ts, fence, event string) []byte {
	line, err := json.Marshal(struct {
		Device string `json:"device"`
		TS     string `json:"ts"`
		Fence  string `json:"fence"`
		Event  string `json:"event"`
	}{device, ts, fence, event})
	if err != nil {
		return b // there is nothing in it that can't be encoded
	}
	return append(append(b, line...), '\n')
}

func appendCSVLine(b []byte, device, ts, fence, event string) []byte {
	for i, field := range []string{device, ts, fence, event} {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCSV(b, field)
	}
	return append(b, '\n')
}

// appendCSV appends a field, in quotes where it needs them.
func appendCSV(b []byte, field string) []byte {
	if !strings.ContainsAny(field, ",\"\r\n") {
		return append(b, field...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(field, `"`, `""`)...)
	return append(b, '"')
}

// summary says what became of the fixes that changed nothing.
func (m *matcher) summary() {
	var parts []string
	for _, r := range []struct {
		result geofence.Result
		words  string
	}{
		{geofence.Late, "older than their device's newest"},
		{geofence.Duplicate, "with the time of their device's newest"},
		{geofence.Future, "in the future"},
		{geofence.Inaccurate, "too inaccurate"},
		{geofence.Teleport, "too far away too soon"},
	} {
		if n := m.results[r.result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", thousands(n), r.words))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(m.warn, "%s fixes; not judged: %s\n", thousands(m.fixes), strings.Join(parts, ", "))
	}
	if m.bad > 0 {
		fmt.Fprintf(m.warn, "passed over, because it is no fix: %s\n", plural(m.bad, "row"))
	}
}

// thousands writes a number with separators.
func thousands(n int) string {
	s := strconv.Itoa(n)
	var parts []string
	for len(s) > 3 {
		parts = append(parts, s[len(s)-3:])
		s = s[:len(s)-3]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	city  = "../../examples/city.geojson"
	fixes = "../../examples/fixes.csv"
)

// data returns a file of the real data, which is not part of the project.
func data(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("TRIPLINE_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the real data is not here; TRIPLINE_DATA names its folder: %v", err)
	}
	return path
}

func TestMatchOfRealTraces(t *testing.T) {
	want, err := os.ReadFile(data(t, "geolife-beijing-transitions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	r := tripline(t, "", "match", "--fences", data(t, "beijing-districts.geojson"), "--fixes", data(t, "geolife.csv.gz"))
	if r.code != exitOK || r.out != string(want) {
		t.Errorf("exit code %d, %d bytes, want %d bytes that another program computed\n%s", r.code, len(r.out), len(want), r.err)
	}
	if r.err != "346,702 fixes; not judged: 213 with the time of their device's newest\n" {
		t.Errorf("got %s", r.err)
	}
}

func TestMatchOfTheExample(t *testing.T) {
	want, err := os.ReadFile("testdata/example.csv")
	if err != nil {
		t.Fatal(err)
	}
	r := tripline(t, "", "match", "--fences", city, "--fixes", fixes, "--on", "enter,exit,dwell,cross")
	if r.code != exitOK || r.out != string(want) || r.err != "" {
		t.Errorf("got %+v", r)
	}
	text, err := os.ReadFile(fixes)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString("device,ts,fence,event\n")
	asJSON := tripline(t, "", "match", "--fences", city, "--fixes", fixes, "--on", "enter,exit,dwell,cross", "--json")
	for line := range strings.Lines(asJSON.out) {
		var l struct{ Device, TS, Fence, Event string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines.Write(appendCSVLine(nil, l.Device, l.TS, l.Fence, l.Event))
	}
	if lines.String() != r.out {
		t.Errorf("as JSON: got %+v", asJSON)
	}
	again := tripline(t, string(text), "match", "--fences", city, "--fixes", "-", "--on=enter,exit", "--on=dwell,cross")
	if again.out != r.out {
		t.Errorf("from standard input: got %+v", again)
	}
}

const square = `{"type":"Feature","id":"sq,1","properties":{},"geometry":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1],[0,0]]]}}`

func TestMatchPrintsTSAsGiven(t *testing.T) {
	fence := file(t, "f.geojson", square)
	in := strings.Join([]string{
		"device,ts,lat,lon", "a,1767225600,2,2", "a,1767225601.5,0.5,0.5", `"b""x",2026-01-01T02:00:00+02:00,0.5,0.5`,
		"a,1767225602500,2,2", "a,1767225601,0.5,0.5", "a,1767225602.5,0.5,0.5", "a,2999-01-01T00:00:00Z,0.5,0.5", "",
	}, "\n")
	r := tripline(t, in, "match", "--fences", fence, "--fixes", "-")
	want := "device,ts,fence,event\na,1767225601.5,\"sq,1\",enter\n\"b\"\"x\",2026-01-01T02:00:00+02:00,\"sq,1\",enter\na,1767225602500,\"sq,1\",exit\n"
	if r.code != exitOK || r.out != want {
		t.Errorf("got %d\n%s\nwant\n%s", r.code, r.out, want)
	}
	if want := "7 fixes; not judged: 1 older than their device's newest, 1 with the time of their device's newest, 1 in the future\n"; r.err != want {
		t.Errorf("got  %swant %s", r.err, want)
	}
}

func TestMatchTakesRulesFromAConfiguration(t *testing.T) {
	fence := file(t, "f.geojson", square)
	config := file(t, "t.yaml", "tracking: {initial: silent, confirm: 2, dwell: [1m]}")
	in := "device,ts,lat,lon\na,60,0.5,0.5\na,70,0.5,0.5\na,80,2,2\na,90,0.5,0.5\na,200,0.5,0.5\na,210,2,2\na,220,2,2\n"
	r := tripline(t, in, "match", "-c", config, "--fences", fence, "--fixes", "-", "--on", "enter,exit,dwell")
	want := "device,ts,fence,event\na,1970-01-01T00:02:10Z,\"sq,1\",dwell\na,220,\"sq,1\",exit\n"
	if r.code != exitOK || r.out != want {
		t.Errorf("got %d %s\n%s\nwant\n%s", r.code, r.err, r.out, want)
	}
}

func TestMatchOfBadInput(t *testing.T) {
	fence := file(t, "f.geojson", square)
	broken := file(t, "broken.geojson", "{\n \"type\": \"Feature\", \"id\": \"x\", \"geometry\": {\"type\": \"Polygon\", \"coordinates\": [[[0,0],[1,1],[0,0]]]}}")
	csv := file(t, "t.csv", "device,ts,lat,lon\na,1767225600,0.5,0.5\na,1767225601,95,0.5\na,1767225602,2,2\n")
	tests := []struct {
		name string
		args []string
		code int
		out  string
		err  string
	}{
		{"a bad row stops it, with its place", []string{"--fences", fence, "--fixes", csv}, exitFailure,
			"device,ts,fence,event\na,1767225600,\"sq,1\",enter\n", "tripline: " + csv + ":3: lat 95 is outside -90..90; lat and lon look swapped\n"},
		{"unless it is passed over", []string{"--fences", fence, "--fixes", csv, "--skip-bad"}, exitOK,
			"device,ts,fence,event\na,1767225600,\"sq,1\",enter\na,1767225602,\"sq,1\",exit\n", "passed over, because it is no fix: 1 row\n"},
		{"no such file", []string{"--fences", fence, "--fixes", csv + ".gz"}, exitFailure, "device,ts,fence,event\n", "no such file"},
		{"no such fences", []string{"--fences", fence + "x", "--fixes", csv}, exitUsage, "", "reading the fences: open " + fence + "x: no such file"},
		{"bad fences, with their place", []string{"--fences", broken, "--fixes", csv}, exitUsage, "", broken + ":2:"},
		{"one fence in two files", []string{"--fences", fence, "--fences", fence, "--fixes", csv}, exitUsage, "", "is in " + fence + " as well"},
		{"the files may follow one another", []string{"--fences", fence, broken, "--fixes", csv}, exitUsage, "", broken + ":2:"},
		{"a bad configuration", []string{"--fences", fence, "--fixes", csv, "-c", file(t, "t.yaml", "trackin: {}")}, exitUsage, "", `t.yaml:1:1: unknown key "trackin" (did you mean "tracking"?)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tripline(t, "", append([]string{"match"}, tt.args...)...)
			if r.code != tt.code || r.out != tt.out || !strings.Contains(r.err, tt.err) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestMatchReportsAFullDisk(t *testing.T) {
	var errs bytes.Buffer
	code := run(streams{ctx: t.Context(), out: full{}, err: &errs}, []string{"match", "--fences", city, "--fixes", fixes})
	if code != exitFailure || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("got %d %s", code, errs.String())
	}
}

// full is a device with no space left.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: errNoSpace}
}

type noSpace struct{}

func (noSpace) Error() string { return "no space left on device" }

var errNoSpace noSpace

func BenchmarkMatch(b *testing.B) {
	for b.Loop() {
		code := run(streams{ctx: b.Context(), out: new(bytes.Buffer), err: new(bytes.Buffer)}, []string{"match", "--fences", city, "--fixes", fixes})
		if code != exitOK {
			b.Fatal(code)
		}
	}
}

package tracks_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/tracks"
)

// read returns every row as one line, and every bad row as its error.
func read(t *testing.T, in io.Reader, name string, o tracks.Options) (string, error) {
	t.Helper()
	r, err := tracks.NewReader(in, name, o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		row, err := r.Next()
		if err == io.EOF {
			return b.String(), nil
		}
		if bad, ok := errors.AsType[*tracks.RowError](err); ok {
			fmt.Fprintln(&b, bad)
			continue
		}
		if err != nil {
			return b.String(), err
		}
		f := row.Fix
		fmt.Fprintf(&b, "%d: %s %s=%d %v %v", row.Line, f.Device, row.TS, f.TS, f.Lat, f.Lon)
		for _, o := range []struct {
			has  geofence.Fields
			name string
			v    float64
		}{
			{geofence.HasAccuracy, "accuracy", f.Accuracy}, {geofence.HasSpeed, "speed", f.Speed},
			{geofence.HasHeading, "heading", f.Heading}, {geofence.HasAlt, "alt", f.Alt},
		} {
			if f.Has&o.has != 0 {
				fmt.Fprintf(&b, " %s=%v", o.name, o.v)
			}
		}
		if len(f.Props) > 0 {
			fmt.Fprintf(&b, " %s", f.Props)
		}
		fmt.Fprintln(&b)
	}
}

func TestReader(t *testing.T) {
	const jan1 = 1767225600000 // 2026-01-01T00:00:00Z
	tests := []struct {
		name, in string
		o        tracks.Options
		want     string
	}{
		{"CSV", "device,ts,lat,lon\nv1,2026-01-01T00:00:00Z,52.5,13.4\n", tracks.Options{},
			"2: v1 2026-01-01T00:00:00Z=1767225600000 52.5 13.4\n"},
		{"columns in any order, with unknown ones and the optional ones",
			"lon,note,lat,Device,TS,alt,accuracy,speed,heading\n13.4,hi,52.5,v1,1767225600,34.5,8,1.5,270\n", tracks.Options{},
			"2: v1 1767225600=1767225600000 52.5 13.4 accuracy=8 speed=1.5 heading=270 alt=34.5\n"},
		{"other people's names", "id;timestamp;latitude;lng;acc;ele\nv1;1767225600123;-1;-2;5;-3\n", tracks.Options{},
			"2: v1 1767225600123=1767225600123 -1 -2 accuracy=5 alt=-3\n"},
		{"byte-order mark, CRLF, blank lines, no line end at the end",
			"\xef\xbb\xbfdevice,ts,lat,lon\r\n\r\nv1,1767225600,1,2\r\n\r\nv2,1767225601,3,4", tracks.Options{},
			"3: v1 1767225600=1767225600000 1 2\n5: v2 1767225601=1767225601000 3 4\n"},
		{"quotes, doubled quotes, separators and line breaks inside",
			"device,ts,lat,lon,note\n\"v,\"\"1\"\"\",\"2026-01-01T00:00:00Z\",1,2,\"a\nb\"\nv2,1767225600,3,4,\n", tracks.Options{},
			"2: v,\"1\" 2026-01-01T00:00:00Z=1767225600000 1 2\n4: v2 1767225600=1767225600000 3 4\n"},
		{"spaces around numbers", "device, ts, lat, lon\nv1,1767225600, 1.5, 2.5\n", tracks.Options{},
			"2: v1 1767225600=1767225600000 1.5 2.5\n"},
		{"offsets and fractions", "device,ts,lat,lon\nv,2026-01-01T01:00:00+01:00,1,2\nv,2026-01-01T00:00:00.5Z,1,2\nv,2026-01-01T00:00:00.123456789Z,1,2\nv,1767225600.25,1,2\n", tracks.Options{},
			"2: v 2026-01-01T01:00:00+01:00=1767225600000 1 2\n3: v 2026-01-01T00:00:00.5Z=1767225600500 1 2\n4: v 2026-01-01T00:00:00.123456789Z=1767225600123 1 2\n5: v 1767225600.25=1767225600250 1 2\n"},
		{"negative speed and heading mean unknown", "device,ts,lat,lon,accuracy,speed,heading\nv,1767225600,1,2,,-1,-1\nv,1767225600,1,2,-1,,\nv,1767225600,1,2,,,361\n", tracks.Options{},
			"2: v 1767225600=1767225600000 1 2\nf:3: accuracy -1 is negative: the device says that its position is not valid\nf:4: heading 361 is outside 0..360\n"},
		{"OwnTracks in NDJSON, other messages passed over", `{"_type":"location","tst":1767225600,"lat":1,"lon":2,"vel":36}` + "\n" + `{"_type":"lwt","tst":1}` + "\n", tracks.Options{Device: "phone"},
			"1: phone 1767225600=1767225600000 1 2 speed=10\n"},
		{"a device for a file that has none", "ts,lat,lon\n1767225600,1,2\n", tracks.Options{Device: "v9"},
			"2: v9 1767225600=1767225600000 1 2\n"},
		{"bad rows are told and passed over", strings.Join([]string{
			"device,ts,lat,lon", "v1,yesterday,1,2", ",1767225600,1,2", "v1,1767225600,north,2", "v1,1767225600,116.4,39.9",
			"v1,1767225600,95,120", "v1,1767225600,1,181", "v1,1767225600,NaN,2", "v1,1767225600,1", "v1,2026-02-30T00:00:00Z,1,2", "v1,,1,2",
			"v1,1767225600,1,2,", "v1,9e99,1,2", "v1,1767225600,1,2", `"open`, ""}, "\n"), tracks.Options{},
			strings.Join([]string{
				`f:2: ts "yesterday" is neither a time in RFC 3339, such as 2026-01-31T09:30:00Z, nor unix seconds or milliseconds`,
				`f:3: device is empty`,
				`f:4: lat "north" is no number`,
				`f:5: lat 116.4 is outside -90..90; lat and lon look swapped`,
				`f:6: lat 95 is outside -90..90`,
				`f:7: lon 181 is outside -180..180`,
				`f:8: lat "NaN" is no number`,
				`f:9: the row has 3 fields, the first line names 4`,
				`f:10: ts "2026-02-30T00:00:00Z" is neither a time in RFC 3339, such as 2026-01-31T09:30:00Z, nor unix seconds or milliseconds`,
				`f:11: ts is empty`,
				`f:12: the row has 5 fields, the first line names 4; numbers take a decimal point, and what holds a comma stands in quotes`,
				`f:13: ts 9e+99 is past the year 9999; send unix seconds or milliseconds`,
				`14: v1 1767225600=1767225600000 1 2`,
				`f:15: a quote is not closed`, ""}, "\n")},
		{"decimal commas", "device;ts;lat;lon\nv1;1767225600;52,3791;4,9003\nv1;1767225600;1,234,5;4\nv1;1767225600;52.3791;4.9003\n", tracks.Options{},
			"f:2: lat \"52,3791\" has a decimal comma; write a decimal point: 52.3791\nf:3: lat \"1,234,5\" is no number\n4: v1 1767225600=1767225600000 52.3791 4.9003\n"},
		{"a line that is too long", "device,ts,lat,lon\n" + strings.Repeat("x", 1<<20+9) + "\nv,1767225600,1,2\n", tracks.Options{},
			"f:2: the line is longer than 1 MiB\n3: v 1767225600=1767225600000 1 2\n"},
		{"NDJSON", `{"device":"v1","ts":"2026-01-01T00:00:00Z","lat":52.5,"lon":13.4}` + "\n\n" +
			`{"device":"v2","ts":1767225600,"lat":1,"lon":2,"accuracy":3,"speed":4,"heading":5,"alt":6,"props":{"a":1},"more":[]}`, tracks.Options{},
			"1: v1 2026-01-01T00:00:00Z=1767225600000 52.5 13.4\n" +
				"3: v2 1767225600=1767225600000 1 2 accuracy=3 speed=4 heading=5 alt=6 {\"a\":1}\n"},
		{"bad NDJSON", strings.Join([]string{
			`{"device":"v1","ts":1,"lat":1}`, `{"ts":1,"lat":1,"lon":2}`, `{"device":"v1","lat":1,"lon":2}`, `{"device":"v1","ts":1,"lat":"1","lon":2}`,
			`{"device":"v1"`, `{"device":"v1","ts":1,"lat":1,"lon":2,"props":[1]}`, `{"device":"v1","ts":true,"lat":1,"lon":2}`}, "\n"), tracks.Options{},
			"f:1: lon is missing\nf:2: device is missing\nf:3: ts is missing\nf:4: lat is a string; send a number\n" +
				"f:5: no JSON object: unexpected end of JSON input\nf:6: props is an array; send an object\n" +
				"f:7: ts is a boolean; send a time\n"},
	}
	if time.UnixMilli(jan1).UTC().Format(time.RFC3339) != "2026-01-01T00:00:00Z" {
		t.Fatal("the test's own times are wrong")
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, strings.NewReader(tt.in), "f", tt.o)
			if err != nil || got != tt.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, tt.want)
			}
			var zipped bytes.Buffer
			z := gzip.NewWriter(&zipped)
			if _, err := io.WriteString(z, tt.in); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			got, err = read(t, &zipped, "f", tt.o)
			if err != nil || got != tt.want {
				t.Errorf("gzipped: got %v\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
}

const gpx11 = `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1" xmlns:p="http://example.org/p">
  <metadata><name>not a device</name><time>2020-01-01T00:00:00Z</time></metadata>
  <wpt lat="1" lon="2"><time>2020-01-01T00:00:00Z</time><name>w</name></wpt>
  <trk><name>Morning</name><trkseg>
    <trkpt lat="52.5" lon="13.4"><ele>34.5</ele><time>2026-01-01T00:00:00Z</time>
      <extensions><p:TrackPointExtension><p:speed>2.5</p:speed><p:course>90</p:course><p:hr>120</p:hr></p:TrackPointExtension></extensions></trkpt>
    <trkpt lat="52.6" lon="13.5"/>
    <trkpt lat="95" lon="13.5"><time>2026-01-01T00:00:01Z</time></trkpt>
    <trkpt lat="52.7" lon="13.6"><time>2026-01-01T00:00:02Z</time><ele>high</ele></trkpt>
  </trkseg><trkseg><trkpt lon="13.6" lat="52.7"><time>2026-01-01T00:00:03Z</time></trkpt></trkseg></trk>
</gpx>`

const gpx10 = `<?xml version="1.0" encoding="ISO-8859-1"?>
<gpx version="1.0" xmlns="http://www.topografix.com/GPX/1/0"><trk><name>Caf` + "\xe9" + `</name><trkseg>
<trkpt lat="1" lon="2"><ele>3</ele><time>2026-01-01T00:00:00Z</time><course>10</course><speed>4</speed></trkpt></trkseg></trk></gpx>`

func TestGPX(t *testing.T) {
	rest := `f/ride.gpx:8: the track point has no time
f/ride.gpx:9: lat 95 is outside -90..90; lat and lon look swapped
f/ride.gpx:10: ele "high" is no number
11: %[1]s 2026-01-01T00:00:03Z=1767225603000 52.7 13.6
`
	tests := []struct {
		name, in string
		o        tracks.Options
		want     string
		err      string
	}{
		{"1.1, named after the file", gpx11, tracks.Options{},
			"6: ride 2026-01-01T00:00:00Z=1767225600000 52.5 13.4 speed=2.5 heading=90 alt=34.5\n" + fmt.Sprintf(rest, "ride"), ""},
		{"1.1, named after the track", gpx11, tracks.Options{TrackNames: true},
			"6: Morning 2026-01-01T00:00:00Z=1767225600000 52.5 13.4 speed=2.5 heading=90 alt=34.5\n" + fmt.Sprintf(rest, "Morning"), ""},
		{"1.0, Latin-1", gpx10, tracks.Options{TrackNames: true},
			"3: Café 2026-01-01T00:00:00Z=1767225600000 1 2 speed=4 heading=10 alt=3\n", ""},
		{"named by the caller", gpx10, tracks.Options{Device: "v1"},
			"3: v1 2026-01-01T00:00:00Z=1767225600000 1 2 speed=4 heading=10 alt=3\n", ""},
		{"no track", `<gpx><wpt lat="1" lon="2"/></gpx>`, tracks.Options{}, "", "f/ride.gpx has 1 waypoints or route points and no track: only tracks are read, they have times"},
		{"nothing", `<gpx/>`, tracks.Options{}, "", "f/ride.gpx has no track points"},
		{"cut off", gpx10[:len(gpx10)-40], tracks.Options{}, "", "f/ride.gpx:3: no valid XML: unexpected EOF"},
		{"other encoding", `<?xml version="1.0" encoding="UTF-7"?><gpx/>`, tracks.Options{}, "", `f/ride.gpx:1: xml: opening charset "UTF-7": encoding UTF-7 is not taken: save the file as UTF-8`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, strings.NewReader(tt.in), "f/ride.gpx", tt.o)
			if text := fmt.Sprint(err); got != tt.want || (err != nil || tt.err != "") && text != tt.err {
				t.Errorf("got %v\n%s\nwant %s\n%s", err, got, tt.err, tt.want)
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", "f: the file is empty"},
		{"only blank lines", "\n\n", "f: the file is empty"},
		{"UTF-16", "\xff\xfed\x00", "f: the file is UTF-16: save it as UTF-8"},
		{"JSON list", " [{}]", "f: the file is a JSON list: write one object a line, as jq -c '.[]' does"},
		{"no header", "v1,2026-01-01T00:00:00Z,1,2\n", "f:1: there is no column device: the first line must name the columns, as in device,ts,lat,lon"},
		{"a column missing", "device,time,lat\n", "f:1: there is no column lon: the first line must name the columns, as in device,ts,lat,lon"},
		{"a column twice", "device,ts,lat,lon,lng\n", "f:1: the column lon is there twice"},
		{"broken gzip", "\x1f\x8b broken, and long enough", "f: reading gzip: gzip: invalid header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := read(t, strings.NewReader(tt.in), "f", tracks.Options{}); fmt.Sprint(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	if _, err := tracks.Open(filepath.Join(t.TempDir(), "none.csv"), tracks.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	r, err := tracks.Open("-", tracks.Options{Stdin: strings.NewReader("device,ts,lat,lon\nv,1,2,3\n")})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := r.Next(); err != nil || row.Fix.Device != "v" || r.Format() != tracks.CSV || r.Size() != 0 {
		t.Errorf("standard input: got %v, %v, %s", row, err, r.Format())
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	const text = "device,ts,lat,lon\nv,1,2,3\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err = tracks.Open(path, tracks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil || r.Size() != int64(len(text)) || r.Consumed() != int64(len(text)) {
		t.Errorf("got %v, size %d, consumed %d", err, r.Size(), r.Consumed())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// endless gives the same CSV rows again and again.
type endless struct {
	head, body string
	at         int
}

func (e *endless) Read(p []byte) (int, error) {
	src := e.head
	if src == "" {
		src = e.body
	}
	n := copy(p, src[e.at:])
	if e.at += n; e.at == len(src) {
		e.head, e.at = "", 0
	}
	return n, nil
}

func newEndless(t testing.TB) *tracks.Reader {
	r, err := tracks.NewReader(&endless{
		head: "device,ts,lat,lon,accuracy\n",
		body: "geolife-010,2007-08-04T03:30:32Z,39.921712,116.472343,5\ngeolife-011,2007-08-04T03:30:33Z,39.921705,116.472343,\n",
	}, "endless", tracks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCSVAllocatesNothingPerRow(t *testing.T) {
	r := newEndless(t)
	step := func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	step()
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per row, want 0", n)
	}
}

func BenchmarkCSV(b *testing.B) {
	r := newEndless(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

package ingest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

// FuzzDecode holds Decode to what encoding/json makes of the same payload,
// read key by key with the same rules.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"lat":52.52,"lon":13.405,"ts":1700000000.5,"accuracy":5,"speed":1,"heading":3,"alt":4,"props":{"a":[1]}}`,
		`{"lat":5.252e1,"lon":-0,"ts":"2023-11-14T22:13:20.123456789+02:00","id":"car-7"}`,
		`{"_type":"location","lat":1,"lon":2,"tst":1700000000,"vel":3,"cog":4,"acc":5,"alt":6}`,
		`{"_type":"lwt"}`, `{"lat":1,"lat":null}`, `{"l\u0061t":1,"\ud800":2,"device":"car\u002d7"}`,
		`{"lat":123456789012345678901234567890e-28,"lon":1e400}`, `[{}]`, "\ufeff{}", `{"lat":-0.0e-0,"lon":0E+9}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if depth(payload) > 64+1 {
			t.Skip("nests deeper than is accepted")
		}
		got := geofence.Fix{Device: device, Stored: stored, Seq: 1}
		want := got
		err := ingest.Decode(payload, &got)
		verdict := judge(payload, &want)
		switch {
		case err == nil && verdict != accepted,
			errors.Is(err, ingest.ErrIgnored) != (verdict == ignored):
			t.Fatalf("%q: got %v, the model says %v", payload, err, verdict)
		case err != nil && !errors.Is(err, ingest.ErrIgnored):
			if _, ok := errors.AsType[*ingest.Refusal](err); !ok || verdict != refused {
				t.Fatalf("%q: got %v, the model says %v", payload, err, verdict)
			}
		case err == nil && !equal(got, want):
			t.Fatalf("%q:\ngot  %+v\nwant %+v", payload, got, want)
		}
	})
}

// rfc3339 is the grammar. Package time is laxer than it: a comma before the
// fraction, hours of one digit, offsets of a day and more.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func parseTime(text string) (time.Time, bool) {
	var at time.Time
	err := at.UnmarshalText([]byte(text))
	return at, err == nil && rfc3339.MatchString(text) && at.UnixMilli() > 0
}

// FuzzTimestamp holds times to what package time makes of them.
func FuzzTimestamp(f *testing.F) {
	for _, seed := range []string{
		"2023-11-14T22:13:20Z", "2024-02-29T23:59:59.999999999-23:59", "1970-01-01T00:00:00.001Z",
		"9999-12-31T23:59:59Z", "2023-11-14T22:13:20,5Z", "2023-11-14t22:13:20z", "2100-02-29T00:00:00Z", "2023-11-14T22:13:20+24:00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ts string) {
		quoted, err := json.Marshal(ts)
		if err != nil || !utf8.ValidString(ts) {
			t.Skip("no JSON string")
		}
		want, accept := parseTime(ts)
		fix := geofence.Fix{Device: device, Stored: stored}
		err = ingest.Decode([]byte(`{"lat":1,"lon":2,"ts":`+string(quoted)+`}`), &fix)
		if (err == nil) != accept {
			t.Fatalf("%q: got %v, package time accepts it: %v", ts, err, accept)
		}
		if err == nil && fix.TS != want.UnixMilli() {
			t.Fatalf("%q: got %d, want %d", ts, fix.TS, want.UnixMilli())
		}
	})
}

type verdict string

const (
	accepted verdict = "accepted"
	refused  verdict = "refused"
	ignored  verdict = "ignored"
)

// judge is the model: encoding/json does the reading.
func judge(payload []byte, fix *geofence.Fix) verdict {
	var values map[string]json.RawMessage
	if len(payload) > ingest.MaxPayload || !utf8.Valid(payload) ||
		json.Unmarshal(payload, &values) != nil || values == nil {
		return refused
	}
	for k, v := range values {
		if string(v) == "null" {
			delete(values, k)
		}
	}
	own := values["_type"] != nil
	ts, accuracy, speed, heading, unit := "ts", "accuracy", "speed", "heading", 1.0
	if own {
		var kind string
		if json.Unmarshal(values["_type"], &kind) != nil || kind == "encrypted" {
			return refused
		}
		if kind != "location" {
			return ignored
		}
		ts, accuracy, speed, heading, unit = "tst", "acc", "vel", "cog", 1/3.6
	}
	ok := true
	read := func(key string, low, high float64) (float64, bool) {
		if values[key] == nil {
			return 0, false
		}
		var v float64
		ok = ok && json.Unmarshal(values[key], &v) == nil && low <= v && v <= high
		return v, true
	}
	inf := math.MaxFloat64
	var has [6]bool
	fix.Lat, has[0] = read("lat", -90, 90)
	fix.Lon, has[1] = read("lon", -180, 180)
	fix.Accuracy, has[2] = read(accuracy, 0, inf)
	fix.Speed, has[3] = read(speed, -inf, inf)
	fix.Heading, has[4] = read(heading, -inf, 360)
	fix.Alt, has[5] = read("alt", -inf, inf)
	if !has[0] || !has[1] || !ok {
		return refused
	}
	if fix.Speed *= unit; fix.Speed < 0 || !has[3] {
		fix.Speed, has[3] = 0, false
	}
	if fix.Heading < 0 {
		fix.Heading, has[4] = 0, false
	}
	for i, field := range []geofence.Fields{geofence.HasAccuracy, geofence.HasSpeed, geofence.HasHeading, geofence.HasAlt} {
		if has[2+i] {
			fix.Has |= field
		}
	}
	if !judgeTime(values[ts], own, fix) {
		return refused
	}
	if own {
		return accepted
	}
	if props := values["props"]; props != nil {
		fix.Props = props
		ok = ok && props[0] == '{'
	}
	for _, key := range []string{"id", "device"} {
		if v := values[key]; v != nil {
			var id string
			ok = ok && (json.Unmarshal(v, &id) == nil && id == fix.Device || string(v) == fix.Device)
		}
	}
	if !ok {
		return refused
	}
	return accepted
}

func judgeTime(v json.RawMessage, numbersOnly bool, fix *geofence.Fix) bool {
	var text string
	var n float64
	switch {
	case v == nil:
		fix.TS = fix.Stored
	case json.Unmarshal(v, &n) == nil:
		if n >= 0 && n < 1e11 {
			n *= 1000
		}
		if n = math.Round(n); n < 1 || n > 253402300799999 {
			return false
		}
		fix.TS = int64(n)
	case json.Unmarshal(v, &text) == nil && !numbersOnly:
		at, ok := parseTime(text)
		if !ok {
			return false
		}
		fix.TS = at.UnixMilli()
	default:
		return false
	}
	return true
}

func equal(a, b geofence.Fix) bool {
	same := bytes.Equal(a.Props, b.Props)
	a.Props, b.Props = nil, nil
	return same && a.Device == b.Device && a.Stored == b.Stored && a.Seq == b.Seq && a.Has == b.Has && a.TS == b.TS &&
		a.Lat == b.Lat && a.Lon == b.Lon && a.Accuracy == b.Accuracy && a.Speed == b.Speed && a.Heading == b.Heading && a.Alt == b.Alt
}

// depth is how deep a text nests at most; brackets in strings only make it
// larger, which skips an input more.
func depth(payload []byte) int {
	return max(strings.Count(string(payload), "{"), strings.Count(string(payload), "["),
		strings.Count(string(payload), "{")+strings.Count(string(payload), "["))
}

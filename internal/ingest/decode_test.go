package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

const (
	device = "car-7"
	stored = int64(1_790_000_000_123)
)

func decode(payload string) (geofence.Fix, error) {
	fix := geofence.Fix{Device: device, Stored: stored, Seq: 42}
	err := ingest.Decode([]byte(payload), &fix)
	return fix, err
}

func TestDecode(t *testing.T) {
	const all = geofence.HasAccuracy | geofence.HasSpeed | geofence.HasHeading | geofence.HasAlt
	at := func(lat, lon float64, ts int64) geofence.Fix {
		return geofence.Fix{Device: device, Stored: stored, Seq: 42, Lat: lat, Lon: lon, TS: ts}
	}
	full := at(52.5, 13.4, 1_700_000_000_000)
	full.Has, full.Accuracy, full.Speed, full.Heading, full.Alt = all, 5, 12.5, 270, -3
	full.Props = []byte(`{"lat": 1, "x":[{"y":"}"}]}`)
	tracks := at(52.5, 13.4, 1_700_000_000_000)
	tracks.Has, tracks.Accuracy, tracks.Speed, tracks.Heading, tracks.Alt = all, 8, 10, 90, 40

	for _, tc := range []struct {
		name, payload string
		want          geofence.Fix
	}{
		{"without a time it is from when it was stored", `{"lat":52.5,"lon":13.4}`, at(52.5, 13.4, stored)},
		{"unix seconds", `{"lat":52.5,"lon":13.4,"ts":1700000000}`, at(52.5, 13.4, 1_700_000_000_000)},
		{"unix seconds with a fraction", `{"lat":52.5,"lon":13.4,"ts":1700000000.125}`, at(52.5, 13.4, 1_700_000_000_125)},
		{"unix milliseconds", `{"lat":52.5,"lon":13.4,"ts":1700000000125}`, at(52.5, 13.4, 1_700_000_000_125)},
		{"the first number that is milliseconds", `{"lat":1,"lon":2,"ts":1e11}`, at(1, 2, 100_000_000_000)},
		{"the last that is seconds", `{"lat":1,"lon":2,"ts":99999999999}`, at(1, 2, 99_999_999_999_000)},
		{"RFC 3339", `{"lat":1,"lon":2,"ts":"2023-11-14T22:13:20Z"}`, at(1, 2, 1_700_000_000_000)},
		{"RFC 3339 with an offset", `{"lat":1,"lon":2,"ts":"2023-11-15T00:13:20.9999+02:00"}`, at(1, 2, 1_700_000_000_999)},
		{"null is absent", `{"lat":1,"lon":2,"ts":null,"speed":null,"props":null,"id":null,"_type":null}`, at(1, 2, stored)},
		{"the last of a repeated key counts", `{"lat":9,"lon":2,"lat":1}`, at(1, 2, stored)},
		{"an escaped key", `{"l\u0061t":1,"lon":2}`, at(1, 2, stored)},
		{"keys are compared exactly", `{"LAT":99,"lat":1,"Lon":99,"lon":2}`, at(1, 2, stored)},
		{"unknown keys and nesting", `{"a":[1,{"lat":5},[]],"lat":1,"b":{},"lon":2,"c":"\"}"}`, at(1, 2, stored)},
		{"white space", " {\t\"lat\" : 1 ,\r\n\"lon\":2 } \n", at(1, 2, stored)},
		{"its own device id", `{"id":"car-7","device":"car-7","lat":1,"lon":2}`, at(1, 2, stored)},
		{"a phone that does not know how it moves", `{"lat":1,"lon":2,"speed":-1,"heading":-1}`, at(1, 2, stored)},
		{"the edges of the world", `{"lat":-90,"lon":180}`, at(-90, 180, stored)},
		{"everything", `{"lat":52.5,"lon":13.4,"ts":1700000000,"accuracy":5,"speed":12.5,"heading":270,"alt":-3,"props":{"lat": 1, "x":[{"y":"}"}]}}`, full},
		{"OwnTracks", `{"_type":"location","acc":8,"alt":40,"batt":93,"cog":90,"lat":52.5,"lon":13.4,"tid":"ph","tst":1700000000,"vel":36,"speed":"x"}`, tracks},
		{"OwnTracks has its own id", `{"lat":1,"lon":2,"_type":"location","id":"else"}`, at(1, 2, stored)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decode(tc.payload)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", tc.want); g != w {
				t.Fatalf("got  %s\nwant %s", g, w)
			}
		})
	}
}

func TestG13_BadLocationsAreRefusedWithAReason(t *testing.T) {
	for _, tc := range []struct {
		payload string
		reason  ingest.Reason
		detail  string // a part of it
	}{
		{`{"lat":116.3,"lon":39.9}`, ingest.Range, "swapped"},
		{`{"lat":95,"lon":100}`, ingest.Range, "lat 95 is outside"},
		{`{"lat":300,"lon":10}`, ingest.Range, "lat 300 is outside -90..90"},
		{`{"lat":10,"lon":181}`, ingest.Range, "lon 181 is outside"},
		{`{"lat":1e999,"lon":10}`, ingest.Range, "too large"},
		{`{"lat":NaN,"lon":10}`, ingest.Malformed, "at byte 7"},
		{`{"lat":Infinity,"lon":10}`, ingest.Malformed, ""},
		{`{"lat":1}`, ingest.Missing, "lon is missing"},
		{`{"lon":1}`, ingest.Missing, "lat is missing"},
		{`{"lat":null,"lon":1}`, ingest.Missing, "lat is missing"},
		{`{"lat":1,"lat":null,"lon":1}`, ingest.Missing, "lat is missing"},
		{`{"latitude":1,"longitude":1}`, ingest.Missing, `there is "latitude"`},
		{`{}`, ingest.Missing, "lat and lon are missing"},
		{`{"lat":"1","lon":2}`, ingest.Malformed, "lat is a string; send a number"},
		{`{"lat":[1],"lon":2}`, ingest.Malformed, "lat is an array"},
		{`{"lat":1,"lon":2,"accuracy":-5}`, ingest.Range, "negative"},
		{`{"lat":1,"lon":2,"heading":361}`, ingest.Range, "0..360"},
		{`{"lat":1,"lon":2,"alt":"high"}`, ingest.Malformed, "alt is a string"},
		{`{"lat":1,"lon":2,"props":[]}`, ingest.Malformed, "props is an array"},
		{`{"lat":1,"lon":2,"ts":0}`, ingest.Timestamp, "clock set"},
		{`{"lat":1,"lon":2,"ts":-5}`, ingest.Timestamp, "not after 1970"},
		{`{"lat":1,"lon":2,"ts":"1969-01-01T00:00:00Z"}`, ingest.Timestamp, "not after 1970"},
		{`{"lat":1,"lon":2,"ts":1700000000000000}`, ingest.Timestamp, "milliseconds"},
		{`{"lat":1,"lon":2,"ts":"yesterday"}`, ingest.Timestamp, "RFC 3339"},
		{`{"lat":1,"lon":2,"ts":"2023-02-29T00:00:00Z"}`, ingest.Timestamp, "RFC 3339"},
		{`{"lat":1,"lon":2,"ts":true}`, ingest.Malformed, "ts is a boolean"},
		{`{"lat":1,"lon":2,"id":"car-8"}`, ingest.Device, `"car-7"`},
		{`{"lat":1,"lon":2,"device":8}`, ingest.Device, "not the device"},
		{`{"lat":1,"lon":2,"id":{}}`, ingest.Malformed, "id is an object"},
		{`{"_type":"encrypted","data":"x"}`, ingest.Encrypted, "encryption"},
		{`{"_type":"location","lat":1,"lon":2,"tst":"2023-11-14T22:13:20Z"}`, ingest.Malformed, "tst is a string"},
		{`{"_type":7,"lat":1,"lon":2}`, ingest.Malformed, "_type is a number"},
		{``, ingest.Malformed, "expected an object"},
		{`null`, ingest.Malformed, "expected an object"},
		{`[1,2]`, ingest.Malformed, "expected an object"},
		{`{"lat":1,"lon":2}}`, ingest.Malformed, "more after the end"},
		{`{"lat":1,"lon":2,}`, ingest.Malformed, "expected a key"},
		{`{"lat":01,"lon":2}`, ingest.Malformed, ""},
		{`{"lat":1.,"lon":2}`, ingest.Malformed, ""},
		{`{"lat":+1,"lon":2}`, ingest.Malformed, ""},
		{"{\"lat\":1,\"lon\":2,\"x\":\"\n\"}", ingest.Malformed, "control character"},
		{"{\"lat\":1,\"lon\":2,\"x\":\"\xff\"}", ingest.Encoding, "UTF-8"},
		{`{"lat":1,"lon":2,"x":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, ingest.Malformed, "too deep"},
		{`{"lat":1,"lon":2,"x":"` + strings.Repeat("y", ingest.MaxPayload) + `"}`, ingest.Oversized, "at most 65536"},
	} {
		name := tc.payload
		if len(name) > 60 {
			name = name[:60]
		}
		t.Run(name, func(t *testing.T) {
			_, err := decode(tc.payload)
			r, ok := errors.AsType[*ingest.Refusal](err)
			if !ok {
				t.Fatalf("got %v, want a refusal", err)
			}
			if r.Reason != tc.reason || !strings.Contains(r.Detail, tc.detail) {
				t.Fatalf("got %q, %q; want %q with %q", r.Reason, r.Detail, tc.reason, tc.detail)
			}
			if len(r.Detail) > 400 {
				t.Fatalf("a detail of %d bytes", len(r.Detail))
			}
		})
	}
}

func TestDecodeIgnoresWhatCarriesNoLocation(t *testing.T) {
	for _, payload := range []string{
		`{"_type":"lwt","tst":1700000000}`,
		`{"_type":"waypoint","lat":1,"lon":2}`,
		`{"_type":"trans\u0069tion","lat":1,"lon":2}`,
	} {
		if _, err := decode(payload); !errors.Is(err, ingest.ErrIgnored) {
			t.Errorf("%s: got %v", payload, err)
		}
	}
}

func TestDecodeTakesTheMQTTFormOfADeviceID(t *testing.T) {
	fix := geofence.Fix{Device: "ann@example//com.phone"}
	if err := ingest.Decode([]byte(`{"id":"ann@example.com.phone","lat":1,"lon":2}`), &fix); err != nil {
		t.Fatal(err)
	}
}

func TestDecodeLeavesNothingOfTheFixBefore(t *testing.T) {
	fix := geofence.Fix{Device: device, Has: geofence.HasAlt, Alt: 9, Speed: 9, Props: []byte("{}")}
	if err := ingest.Decode([]byte(`{"lat":1,"lon":2,"ts":5}`), &fix); err != nil {
		t.Fatal(err)
	}
	if fix.Has != 0 || fix.Alt != 0 || fix.Speed != 0 || fix.Props != nil {
		t.Fatalf("got %+v", fix)
	}
}

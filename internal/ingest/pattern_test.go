package ingest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tripline/tripline/internal/ingest"
)

func TestParsePatternsSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		subjects []string
		index    int
		text     string // "" for none
	}{
		{[]string{"location.*"}, 0, ""},
		{[]string{"location.*", "owntracks.*.*", "fleet.*.truck.*.*"}, 0, ""},
		{nil, 0, "name at least one"},
		{[]string{"location.>"}, 0, "one * for each"},
		{[]string{"location"}, 0, "no wildcard"},
		{[]string{"location..*"}, 0, "empty token"},
		{[]string{"location.dev*"}, 0, "stands alone"},
		{[]string{"*.location"}, 0, "begins with a wildcard"},
		{[]string{"$JS.*"}, 0, "belong to NATS"},
		{[]string{"a b.*"}, 0, "can't be part of a subject"},
		{[]string{"location.*", "tripline.*.*"}, 1, "tripline.> is what the router uses"},
		{[]string{"location.*", "position.*"}, 1, `as many wildcards as "location.*"`},
		{[]string{"location.*.*", "location.x.*"}, 1, `takes in subjects of "location.*.*"`},
	} {
		_, err := ingest.ParsePatterns(namespace, tc.subjects)
		if tc.text == "" {
			if err != nil {
				t.Errorf("%v: %v", tc.subjects, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%v: got %v, want %q", tc.subjects, err, tc.text)
			continue
		}
		if e, ok := errors.AsType[*ingest.PatternError](err); ok && e.Index != tc.index {
			t.Errorf("%v: error at %d, want %d", tc.subjects, e.Index, tc.index)
		}
	}
	for _, bad := range []string{"", "a.b", "a b", "ü", "*"} {
		if _, err := ingest.ParsePatterns(bad, []string{"location.*"}); err == nil {
			t.Errorf("namespace %q was accepted", bad)
		}
	}
}

func TestParsePatternsReportsEveryFault(t *testing.T) {
	_, err := ingest.ParsePatterns(namespace, []string{"a.>", "b.*", "c"})
	if err == nil || !strings.Contains(err.Error(), `"a.>"`) || !strings.Contains(err.Error(), `"c"`) {
		t.Fatalf("got %v", err)
	}
}

func TestPatternsMapSubjectsAndDevicesBothWays(t *testing.T) {
	p, err := ingest.ParsePatterns(namespace, []string{"location.*", "owntracks.*.*", "fleet.*.truck.*.at.*"})
	if err != nil {
		t.Fatal(err)
	}
	for subject, device := range map[string]string{
		"location.car-7":                                    "car-7",
		"location.dev//42":                                  "dev//42", // MQTT's way to write dev.42
		"owntracks.ann@example//com.phone":                  "ann@example//com.phone",
		"fleet.north.truck.12.at.dock":                      "north.12.dock",
		"location." + strings.Repeat("x", ingest.MaxDevice): strings.Repeat("x", ingest.MaxDevice),
	} {
		got, err := p.Device(subject)
		if err != nil || got != device {
			t.Errorf("%s: got %q, %v", subject, got, err)
		}
		back, err := p.Subject(device)
		if err != nil || back != subject {
			t.Errorf("%s: got %q, %v", device, back, err)
		}
	}
	for _, subject := range []string{
		"", "location", "location.", "location.a.b", "locations.a", "owntracks.a", "owntracks.a.b.c", "other.a",
		"location.*", "location.>", "owntracks.a.*", "owntracks..b", "fleet.a.truck.b.at.", "fleet.a.bus.b.at.c",
		"location.a\x00b", "location.\xff", "location." + strings.Repeat("x", ingest.MaxDevice+1),
	} {
		got, err := p.Device(subject)
		r, ok := errors.AsType[*ingest.Refusal](err)
		if !ok || r.Reason != ingest.Device {
			t.Errorf("%q: got %q, %v; want a refusal", subject, got, err)
		}
	}
	for _, device := range []string{"", "a.b.c.d", "*", "a.>", "a b", "a..b", "."} {
		if got, err := p.Subject(device); err == nil {
			t.Errorf("device %q: got %q", device, got)
		}
	}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := p.Device("owntracks.ann.phone"); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per subject", allocs)
	}
}

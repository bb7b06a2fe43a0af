package geofence_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// replay runs fixes through a tracker as a partition would.
func replay(t *geofence.Tracker, fixes []geofence.Fix, emit func(geofence.Transition)) {
	var trs []geofence.Transition
	for i := range fixes {
		now := fixes[i].Stored
		trs = t.Advance(now, trs[:0])
		trs, _ = t.Track(&fixes[i], now, trs)
		for _, tr := range trs {
			emit(tr)
		}
	}
}

// The real traces over the real districts give exactly the transitions that
// an independent program has found.
func TestGeolifeTransitions(t *testing.T) {
	t.Parallel()
	f, err := os.Open(dataFile(t, "geolife-beijing-transitions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range rows[1:] {
		want = append(want, fmt.Sprintf("%s %s %s %s", r[0], r[1], r[2], r[3]))
	}
	tracker := geofence.NewTracker(mustIndex(t, districts(t)...), geofence.Config{})
	var got []string
	replay(tracker, geolife(t), func(tr geofence.Transition) {
		at := time.UnixMilli(tr.At).UTC().Format(time.RFC3339)
		got = append(got, fmt.Sprintf("%s %s %s %s", tr.Device, at, tr.Fence.ID, tr.Kind))
	})
	if len(want) != 455 {
		t.Fatalf("the file holds %d transitions, want 455", len(want))
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%d transitions, want %d; the first difference is at %d:\n got %v\nwant %v",
					len(got), len(want), i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
			}
		}
	}
}

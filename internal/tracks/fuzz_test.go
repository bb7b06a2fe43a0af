package tracks_test

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/tracks"
)

// FuzzReader holds that no file makes the reader panic or run on for ever, and
// that what it lets through is a fix on the earth at a time that the time
// package agrees with.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"device,ts,lat,lon\nv1,2026-01-01T00:00:00Z,52.5,13.4\n", "a;b\n\"", "lat,lon,ts,id,note\n1,2,3,\"v\n\",x",
		`{"device":"v1","ts":"2026-01-01T00:00:00Z","lat":52.5,"lon":13.4,"props":{}}`, gpx10, gpx11, "\xef\xbb\xbf<gpx>", "\x1f\x8b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := tracks.NewReader(strings.NewReader(string(data)), "f", tracks.Options{})
		if err != nil {
			return
		}
		for range len(data) + 2 {
			row, err := r.Next()
			if _, bad := errors.AsType[*tracks.RowError](err); bad {
				continue
			}
			if err == io.EOF || err != nil {
				return
			}
			x := row.Fix
			if x.Device == "" || !(math.Abs(x.Lat) <= 90) || !(math.Abs(x.Lon) <= 180) || row.Line < 1 {
				t.Fatalf("let through %+v", row)
			}
			if want, err := time.Parse(time.RFC3339Nano, string(row.TS)); err == nil && want.UnixMilli() != x.TS {
				t.Fatalf("ts %s read as %d, want %d", row.TS, x.TS, want.UnixMilli())
			}
		}
		t.Fatal("more rows than bytes")
	})
}

package geofence_test

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// dataFile finds a file of real data: in the folder that TRIPLINE_DATA names,
// or else beside the module. Without it the test is skipped.
func dataFile(tb testing.TB, name string) string {
	tb.Helper()
	dir := os.Getenv("TRIPLINE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("no real data: set TRIPLINE_DATA to the folder that holds %s", name)
	}
	return path
}

func districts(tb testing.TB) []*geofence.Fence {
	tb.Helper()
	data, err := os.ReadFile(dataFile(tb, "beijing-districts.geojson"))
	if err != nil {
		tb.Fatal(err)
	}
	return mustParse(tb, string(data))
}

// geolife reads all fixes of the real traces.
func geolife(tb testing.TB) []geofence.Fix {
	tb.Helper()
	f, err := os.Open(dataFile(tb, "geolife.csv.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	fixes := make([]geofence.Fix, 0, len(rows)-1)
	names := map[string]string{}
	for i, row := range rows[1:] {
		ts, err := time.Parse(time.RFC3339, row[1])
		if err != nil {
			tb.Fatal(err)
		}
		lat, err1 := strconv.ParseFloat(row[2], 64)
		lon, err2 := strconv.ParseFloat(row[3], 64)
		if err1 != nil || err2 != nil {
			tb.Fatal(row)
		}
		if names[row[0]] == "" {
			names[row[0]] = strings.Clone(row[0])
		}
		ms := ts.UnixMilli()
		fixes = append(fixes, geofence.Fix{
			Device: names[row[0]], Lat: lat, Lon: lon, TS: ms, Stored: ms, Seq: uint64(i + 1),
		})
	}
	return fixes
}

func mustParse(tb testing.TB, geojson string) []*geofence.Fence {
	tb.Helper()
	fences, err := geofence.ParseFences([]byte(geojson))
	if err != nil {
		tb.Fatal(err)
	}
	return fences
}

func mustIndex(tb testing.TB, fences ...*geofence.Fence) *geofence.Index {
	tb.Helper()
	ix, err := geofence.NewIndex(fences...)
	if err != nil {
		tb.Fatal(err)
	}
	return ix
}

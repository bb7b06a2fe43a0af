package geofence_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tripline/tripline/geofence"
)

// heap is how many bytes what build returns holds.
func heap[T any](build func() T) (T, float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return v, float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// perFence measures fences of 20 vertices, their share of the index included.
func perFence(tb testing.TB) float64 {
	const n = 20_000
	data := planeGeoJSON(n)
	ix, bytes := heap(func() *geofence.Index {
		fences, err := geofence.ParseFences(data)
		if err != nil {
			tb.Fatal(err)
		}
		return mustIndex(tb, fences...)
	})
	runtime.KeepAlive(data) // or its going would be counted
	if ix.Snapshot().Len() != n {
		tb.Fatal("fences are missing")
	}
	return bytes / n
}

// perDevice measures devices outside all fences.
func perDevice(tb testing.TB) float64 {
	const n = 100_000
	ix := mustIndex(tb, mustParse(tb, polygon("far", `[[[50,50],[51,50],[51,51],[50,50]]]`))...)
	tracker, bytes := heap(func() *geofence.Tracker {
		tracker := geofence.NewTracker(ix, geofence.Config{})
		for i := range 3 * n {
			tracker.Track(&geofence.Fix{
				Device: fmt.Sprintf("vehicle-%06d", i%n), Lat: float64(i%n) / n, TS: int64(i), Stored: int64(i),
				Has: geofence.HasAccuracy | geofence.HasSpeed | geofence.HasHeading, Accuracy: 5, Speed: 10, Heading: 90,
			}, int64(i), nil)
		}
		return tracker
	})
	if tracker.Len() != n {
		tb.Fatal("devices are missing")
	}
	return bytes / n
}

func TestMemory(t *testing.T) {
	if b := perFence(t); b > 1200 {
		t.Errorf("%.0f bytes per fence of 20 vertices, want at most 1200", b)
	}
	if b := perDevice(t); b > 250 {
		t.Errorf("%.0f bytes per device outside all fences, want at most 250", b)
	}
}

// Targets: at most 1200 bytes per fence of 20 vertices, and at most 250 per
// device outside all fences.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(perFence(b), "B/fence")
		b.ReportMetric(perDevice(b), "B/device")
	}
	b.ReportMetric(0, "ns/op")
}

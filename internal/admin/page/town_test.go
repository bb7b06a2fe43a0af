package page_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

// The town lies by a coast, so that a screenshot shows some.
const (
	townLat = 55.676
	townLon = 12.568
)

func vanName(i int) string { return fmt.Sprintf("van-%03d", i) }

func someConsumers() []live.Consumer {
	healthy := func(name, sink, target string, p99 float64) live.Consumer {
		return live.Consumer{
			Name: name, Sink: sink, Target: target, State: "closed", Reason: "", Since: time.Now().Add(-2 * time.Hour),
			P50MS: p99 / 4, P99MS: p99, P99LimitMS: 500, Samples: 240, Probes: 2, SuccessesNeeded: 5,
			Concurrency: 16, InFlight: 3, LaneCap: 1024, LaneDepth: 2, DeliveredTotal: 81_233, DeliveredPerS: 42.4,
			Backlog: live.Backlog{MaxBytes: 64 << 20},
		}
	}
	dispatch := healthy("dispatch", "webhook", "https://dispatch.example/hooks/…", 212)
	dispatch.DeadTotal = 3
	billing := healthy("billing", "webhook", "https://billing.example/…", 96)
	archive := healthy("archive", "jetstream", "archive.triggers", 4.2)
	archive.P99LimitMS = 50
	archive.DeliveredPerS = 118
	return []live.Consumer{dispatch, billing, archive}
}

func someFences() []map[string]any {
	feature := func(id, name, source string, geometry, more map[string]any) map[string]any {
		props := map[string]any{"name": name, "source": source, "tags": []string{"city"}}
		maps.Copy(props, more)
		return map[string]any{"type": "Feature", "id": id, "properties": props, "geometry": geometry}
	}
	at := func(east, north float64) []float64 {
		return []float64{townLon + east/63_000, townLat + north/111_195}
	}
	ring := func(points ...[2]float64) [][][]float64 {
		var r [][]float64
		for _, p := range append(points, points[0]) {
			r = append(r, at(p[0], p[1]))
		}
		return [][][]float64{r}
	}
	return []map[string]any{
		feature("old-town", "Old town", "file", map[string]any{"type": "Polygon", "coordinates": ring(
			[2]float64{-900, -500}, [2]float64{300, -800}, [2]float64{900, -100}, [2]float64{500, 700}, [2]float64{-500, 800}, [2]float64{-1100, 200})}, nil),
		feature("harbour", "Harbour", "file", map[string]any{"type": "Polygon", "coordinates": ring(
			[2]float64{1100, -900}, [2]float64{2300, -1200}, [2]float64{2600, 900}, [2]float64{1500, 700})}, nil),
		feature("depot-west", "Depot west", "file", map[string]any{"type": "Point", "coordinates": at(-2100, 300)}, map[string]any{"radius_m": 420}),
		feature("depot-north", "Depot north", "kv", map[string]any{"type": "Point", "coordinates": at(-300, 1700)}, map[string]any{"radius_m": 300}),
		feature("ring-road", "Ring road", "kv", map[string]any{"type": "LineString", "coordinates": [][]float64{
			at(-2600, -1500), at(-1200, -1300), at(200, -1600), at(1400, -1500)}}, map[string]any{"radius_m": 90}),
	}
}

func someTrigger(n int) live.Trigger {
	transitions := []string{"enter", "exit", "dwell", "enter", "cross"}
	fences := []string{"old-town", "harbour", "depot-west", "depot-north", "ring-road", "old-town"}
	return live.Trigger{
		ID: fmt.Sprintf("T%06d", n), At: time.Now(), Device: vanName(n * 7 % 60), Fence: fences[n%len(fences)],
		Transition: transitions[n%len(transitions)], Consumers: []string{"dispatch", "archive"}[:1+n%2],
		Initial: n%11 == 0,
	}
}

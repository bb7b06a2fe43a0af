package geofence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tripline/tripline/geofence"
)

// worldwide draws fences of all shapes anywhere: over 180 degrees, at the
// poles, around them.
func worldwide(t testing.TB, r *rand.Rand, n int) []*geofence.Fence {
	var all []string
	for len(all) < n {
		id := fmt.Sprintf("f%04d", len(all))
		lat, lon := r.Float64()*180-90, r.Float64()*360-180
		if r.IntN(3) == 0 {
			lon = math.Copysign(180-2*r.Float64(), lon)
		}
		if r.IntN(4) == 0 {
			lat = math.Copysign(90-2*r.Float64(), lat)
		}
		size := math.Pow(10, -2+3*r.Float64())
		wrap := func(x float64) float64 { return math.Mod(x+540, 360) - 180 }
		var one string
		switch r.IntN(6) {
		case 4: // many islands, some of which overlap
			var islands []string
			for range 3 + r.IntN(30) {
				x, y := wrap(lon+3*size*r.Float64()), math.Max(-89, math.Min(89, lat+3*size*r.Float64()))
				islands = append(islands, fmt.Sprintf("[[[%v,%v],[%v,%v],[%v,%v],[%v,%v]]]",
					x, y, wrap(x+size), y, wrap(x+size), y+size/20, x, y))
			}
			one = feature(id, "{}", `{"type":"MultiPolygon","coordinates":[`+strings.Join(islands, ",")+`]}`)
		case 5: // a long road
			var road []string
			for i := range 20 + r.IntN(300) {
				road = append(road, fmt.Sprintf("[%v,%v]", wrap(lon+float64(i)*size/50), math.Max(-90, math.Min(90, lat+size*r.Float64()))))
			}
			one = feature(id, fmt.Sprintf(`{"radius_m":%v}`, size*1000), `{"type":"LineString","coordinates":[`+strings.Join(road, ",")+`]}`)
		case 0:
			one = feature(id, fmt.Sprintf(`{"radius_m":%v}`, size*111000),
				fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, lon, lat))
		case 1:
			one = feature(id, fmt.Sprintf(`{"radius_m":%v}`, size*10000),
				fmt.Sprintf(`{"type":"LineString","coordinates":[[%v,%v],[%v,%v],[%v,%v]]}`,
					lon, lat, wrap(lon+size), lat*0.9, wrap(lon+2*size), lat*0.95))
		case 2: // around a pole
			y := math.Copysign(60+29*r.Float64(), lat)
			one = polygon(id, fmt.Sprintf("[[[%v,%v],[%v,%v],[%v,%v],[%v,%v],[%v,%v]]]",
				lon, y, wrap(lon+90), y, wrap(lon+180), y, wrap(lon+270), y, lon, y))
		default:
			var ring [][2]float64
			for i, k := 0, 3+r.IntN(60); i < k; i++ {
				s := size * (0.3 + 0.7*r.Float64())
				sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(k))
				ring = append(ring, [2]float64{wrap(lon + s*cos), math.Max(-90, math.Min(90, lat+s*sin))})
			}
			one = polygon(id, naive{append(ring, ring[0])}.geojson())
		}
		if _, err := geofence.ParseFences([]byte(one)); err == nil {
			all = append(all, one)
		}
	}
	return mustParse(t, `{"type":"FeatureCollection","features":[`+strings.Join(all, ",")+`]}`)
}

func randomPoint(r *rand.Rand) (lat, lon float64) {
	lat, lon = r.Float64()*180-90, r.Float64()*360-180
	switch r.IntN(6) {
	case 0:
		lon = math.Copysign(180, lon)
	case 1:
		lon = math.Copysign(180-2*r.Float64(), lon)
	case 2:
		lat = math.Copysign(90-2*r.Float64()*r.Float64(), lat)
	}
	return lat, lon
}

// The index finds what asking each fence finds, also after changes.
func TestIndexMatchesNaiveOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 7))
	all := worldwide(t, r, 240)
	ix := mustIndex(t, all[:120]...)
	present := map[string]*geofence.Fence{}
	for _, f := range all[:120] {
		present[f.ID] = f
	}
	for round := range 12 {
		snapshot := ix.Snapshot()
		if snapshot.Len() != len(present) {
			t.Fatalf("%d fences, want %d", snapshot.Len(), len(present))
		}
		hits := 0
		for range fewer(10_000) {
			lat, lon := randomPoint(r)
			var want []string
			for f := range snapshot.All() {
				if present[f.ID] != f {
					t.Fatalf("%s is not the version that was put", f.ID)
				}
				if f.Contains(lat, lon) {
					want = append(want, f.ID)
				}
			}
			var got []string
			for _, f := range snapshot.Match(lat, lon, nil) {
				got = append(got, f.ID)
			}
			hits += len(got)
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, %v,%v: got %v, want %v", round, lat, lon, got, want)
			}
		}
		if hits == 0 {
			t.Fatal("no point was in any fence")
		}
		var c geofence.Change
		for _, i := range r.Perm(len(all))[:1+r.IntN(80)] { // some small changes, some large
			f := all[i]
			if present[f.ID] != nil && r.IntN(2) == 0 {
				c.Delete = append(c.Delete, f.ID)
				delete(present, f.ID)
			} else {
				g := f.WithRevision(uint64(round + 1))
				c.Put = append(c.Put, g)
				present[f.ID] = g
			}
		}
		if err := ix.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing changes within the box that a fence's clear method gives.
func TestClearBoxesAreClear(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	boxes := 0
	for _, f := range worldwide(t, r, 400) {
		for range 60 {
			lat, lon := randomPoint(r)
			if r.IntN(2) == 0 { // near the fence
				for range 200 {
					if f.Contains(lat, lon) {
						break
					}
					lat, lon = randomPoint(r)
				}
			}
			limit := math.Pow(10, -3+3*r.Float64())
			if math.Abs(lat)+limit > 89 {
				continue
			}
			half := f.ClearAround(lat, lon, limit)
			if half <= 0 {
				continue
			}
			boxes++
			wide := half / math.Cos(math.Max(0, math.Abs(lat)-half)*math.Pi/180)
			inside := f.Contains(lat, lon)
			for range 30 {
				y, x := lat+half*(2*r.Float64()-1), lon+wide*(2*r.Float64()-1)
				if r.IntN(3) == 0 {
					y, x = lat+math.Copysign(half, y-lat), lon+math.Copysign(wide, x-lon)
				}
				if x >= -180 && x <= 180 && f.Contains(y, x) != inside {
					t.Fatalf("%s: %v,%v differs from %v,%v, in a box of half height %v", f.ID, y, x, lat, lon, half)
				}
			}
		}
	}
	if boxes < 5000 {
		t.Fatalf("only %d boxes", boxes)
	}
}

// Crossings are where trying many places on the segment finds them.
func TestCrossingsMatchOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	crossed := 0
	for _, f := range randomFences(t, r, fewer(400)) {
		for range 30 {
			x1, y1 := (2*r.Float64()-0.5)*world, (2*r.Float64()-0.5)*world
			x2, y2 := (2*r.Float64()-0.5)*world, (2*r.Float64()-0.5)*world
			if f.Contains(y1, x1) || f.Contains(y2, x2) {
				continue
			}
			const n = 4000
			first, last := -1.0, -1.0
			for i := range n + 1 {
				s := float64(i) / n
				if f.Contains(y1+s*(y2-y1), x1+s*(x2-x1)) {
					if first < 0 {
						first = s
					}
					last = s
				}
			}
			from, to, ok := f.Crossing(x1, y1, x2, y2)
			if first < 0 {
				if ok && to-from > 2.0/n && f.Contains(y1+(from+to)/2*(y2-y1), x1+(from+to)/2*(x2-x1)) {
					t.Fatalf("%s: no place found on the segment, but crossing %v..%v", f.ID, from, to)
				}
				continue
			}
			crossed++
			inside := func(s float64) bool { return f.Contains(y1+s*(y2-y1), x1+s*(x2-x1)) }
			// What lies between two of the places tried may be found besides.
			begins := math.Abs(from-first) <= 1.5/n ||
				from < first && (inside(from+1e-9) || inside(from+1e-7) || inside(from+1e-6) || inside(from+1e-5))
			ends := math.Abs(to-last) <= 1.5/n ||
				to > last && (inside(to-1e-9) || inside(to-1e-7) || inside(to-1e-6) || inside(to-1e-5))
			if !ok || !begins || !ends {
				t.Fatalf("%s: crossing %v..%v %v, want %v..%v", f.ID, from, to, ok, first, last)
			}
		}
	}
	if crossed < fewer(300) {
		t.Fatalf("only %d crossings", crossed)
	}
}

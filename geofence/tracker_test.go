package geofence_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
)

// A fix that makes no transition allocates nothing, whichever way it takes.
func TestTrackAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	ix := mustIndex(t, append(randomFences(t, r, 30), mustParse(t, polygon("zz", naive{star(r, 200, 0, 0, 1, 2)}.geojson()))...)...)
	for name, cfg := range map[string]geofence.Config{
		"defaults": {},
		"all rules": {
			Cross: true, Confirm: 3, ExitBufferM: 20, MaxAccuracyM: 100, MaxSpeed: 500,
			Dwell: []time.Duration{1000 * time.Hour}, SilentAfter: time.Hour, ForgetAfter: 2 * time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := geofence.NewTracker(ix, cfg)
			fixes := make([]geofence.Fix, 4096)
			for i := range fixes {
				fixes[i] = geofence.Fix{
					Device: fmt.Sprintf("d%d", i%8), Lat: 0.004 + float64(i%8)*1e-4, Lon: 0.004 + r.Float64()*1e-6,
					Has: geofence.HasAccuracy | geofence.HasAlt, Accuracy: 5, Alt: 50, Props: []byte(`{"a":1}`),
				}
			}
			trs := make([]geofence.Transition, 0, 64)
			i, told := 0, 0
			step := func() {
				fix := &fixes[i%len(fixes)]
				fix.TS = int64(i) * 100
				fix.Stored = fix.TS
				i++
				trs = tracker.Advance(fix.TS, trs[:0])
				trs, _ = tracker.Track(fix, fix.TS, trs)
				told += len(trs)
			}
			for range 1000 {
				step()
			}
			told = 0
			if n := testing.AllocsPerRun(2000, step); n != 0 {
				t.Errorf("%v allocations per fix", n)
			}
			if told != 0 {
				t.Fatalf("%d transitions: the test doesn't test what it should", told)
			}
			for name, fix := range map[string]*geofence.Fix{
				"late":      {Device: "d0", TS: 1},
				"future":    {Device: "d0", TS: 1 << 60},
				"duplicate": {Device: "d1", TS: fixes[(i-8+1)%8].TS},
			} {
				if n := testing.AllocsPerRun(100, func() { tracker.Track(fix, fixes[(i-1)%len(fixes)].TS, trs[:0]) }); n != 0 {
					t.Errorf("%s: %v allocations", name, n)
				}
			}
		})
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	snapshot := mustIndex(t, worldwide(t, r, 500)...).Snapshot()
	hits := make([]*geofence.Fence, 0, 500)
	if n := testing.AllocsPerRun(5000, func() {
		lat, lon := randomPoint(r)
		hits = snapshot.Match(lat, lon, hits[:0])
	}); n != 0 {
		t.Errorf("%v allocations per match", n)
	}
}

// Readers of the index never wait for its writer, and each of them sees all of
// a change or nothing.
func TestIndexReadersBesideWriter(t *testing.T) {
	versions := [2][]*geofence.Fence{}
	for v := range versions {
		for i := range 200 {
			versions[v] = append(versions[v], mustParse(t, feature(fmt.Sprintf("f%03d", i), `{"radius_m":500000}`,
				`{"type":"Point","coordinates":[0,0]}`))[0].WithRevision(uint64(v+1)))
		}
	}
	ix := mustIndex(t, versions[0]...)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var hits []*geofence.Fence
			for {
				select {
				case <-done:
					return
				default:
				}
				hits = ix.Snapshot().Match(1, 1, hits[:0])
				if len(hits) != 200 {
					t.Errorf("%d fences, want 200", len(hits))
					return
				}
				for _, f := range hits {
					if f.Revision != hits[0].Revision {
						t.Error("half a change was visible")
						return
					}
				}
			}
		})
	}
	for i := range 300 {
		if err := ix.Apply(geofence.Change{Put: versions[(i+1)%2]}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
}

// Small edits of a large index, against a map.
func TestIndexManySmallEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	ix := mustIndex(t)
	want := map[string]*geofence.Fence{}
	ring := [][2]float64{{0, 0}, {1, 0}, {1, 1}, {0, 0}}
	for range 6000 {
		id := fmt.Sprintf("f%04d", r.IntN(3000))
		c := geofence.Change{Delete: []string{id}}
		if r.IntN(3) > 0 {
			f := geofence.PolygonFence(id, ring)
			c = geofence.Change{Put: []*geofence.Fence{f}}
			want[id] = f
		} else {
			delete(want, id)
		}
		if err := ix.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	s := ix.Snapshot()
	all := slices.Collect(s.All())
	if len(all) != len(want) || s.Len() != len(want) || len(s.Match(0.5, 0.7, nil)) != len(want) {
		t.Fatalf("%d fences, Len %d, want %d", len(all), s.Len(), len(want))
	}
	for i, f := range all {
		if want[f.ID] != f || s.Fence(f.ID) != f || i > 0 && all[i-1].ID >= f.ID {
			t.Fatalf("fence %d, %s, is not the one that was put, or out of order", i, f.ID)
		}
	}
	if s.Fence("f") != nil || s.Fence("g") != nil || s.Fence("f0000x") != nil {
		t.Error("a fence that was never put is there")
	}
}

func TestPresenceTellsWhatIsKnown(t *testing.T) {
	ix := mustIndex(t, mustParse(t, feature("a", `{"radius_m":50}`, `{"type":"Point","coordinates":[0,0]}`))...)
	tracker := geofence.NewTracker(ix, geofence.Config{})
	if _, ok := tracker.Presence("van"); ok || tracker.Seq("van") != 0 || tracker.Forget("van") {
		t.Error("an unknown device is known")
	}
	props := []byte(`{"load":7}`)
	fix := geofence.Fix{Device: "van", TS: 5, Stored: 6, Seq: 9, Has: geofence.HasHeading, Heading: 12, Props: props}
	tracker.Track(&fix, 6, nil)
	copy(props, "XXXXXXXXXX") // the caller's again
	p, ok := tracker.Presence("van")
	if !ok || p.Seq != 9 || p.Newest.Heading != 12 || string(p.Newest.Props) != `{"load":7}` ||
		len(p.Stays) != 1 || p.Stays[0].Fence.ID != "a" || p.Stays[0].EnteredAt != 5 {
		t.Errorf("%+v", p)
	}
	if got := slices.Collect(tracker.Inside("a")); !slices.Equal(got, []string{"van"}) {
		t.Errorf("inside are %v", got)
	}
	if got := slices.Collect(tracker.FenceVersions()); len(got) != 1 || got[0] != ix.Snapshot().Fence("a") {
		t.Errorf("versions are %v", got)
	}
	if !tracker.Forget("van") || tracker.Len() != 0 || len(slices.Collect(tracker.Inside("a"))) != 0 ||
		len(slices.Collect(tracker.FenceVersions())) != 0 {
		t.Error("something of the device is left")
	}
}

// A fence that vanished while nobody watched, with its last version or
// without.
func TestRestoreOfAVanishedFence(t *testing.T) {
	f := mustParse(t, feature("a", `{"radius_m":50,"name":"A"}`, `{"type":"Point","coordinates":[0,0]}`))[0].WithRevision(3)
	tracker := geofence.NewTracker(mustIndex(t, f), geofence.Config{})
	tracker.Track(&geofence.Fix{Device: "van", TS: 5, Stored: 6, Seq: 9}, 6, nil)
	enc, ok := tracker.AppendPresence(nil, "van")
	if !ok {
		t.Fatal("nothing to save")
	}
	for _, kept := range []bool{true, false} {
		next := geofence.NewTracker(mustIndex(t), geofence.Config{})
		err := next.Restore("van", enc, func(id string, rev uint64) *geofence.Fence {
			if id != "a" || rev != 3 {
				t.Errorf("asked for %s, revision %d", id, rev)
			}
			if kept {
				return f
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		trs := next.Refence(100, nil)
		if len(trs) != 1 || trs[0].Kind != geofence.Exit || trs[0].Reason != geofence.ReasonFenceDeleted ||
			trs[0].Fence.ID != "a" || trs[0].Revision != 3 || (trs[0].Fence.Name == "A") != kept || trs[0].EnteredAt != 5 {
			t.Errorf("kept %v: %+v", kept, trs)
		}
		if len(next.Refence(101, nil)) != 0 {
			t.Error("it was told twice")
		}
	}
}

func TestRestoreRefusesWhatItDoesNotKnow(t *testing.T) {
	tracker := geofence.NewTracker(mustIndex(t), geofence.Config{})
	tracker.Track(&geofence.Fix{Device: "van", TS: 5, Seq: 1}, 6, nil)
	enc, _ := tracker.AppendPresence(nil, "van")
	for name, c := range map[string]struct {
		enc  []byte
		want string
	}{
		"nothing":        {nil, "cut short"},
		"a later format": {append([]byte{99}, enc[1:]...), "format 99 is not known"},
		"too much":       {append(bytes.Clone(enc), 0), "bytes are left over"},
	} {
		err := tracker.Restore("van", c.enc, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"van"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tracker.Seq("van") != 1 {
		t.Error("a refused presence took the place of the old one")
	}
}

// The package is pure: no clock, no I/O, nothing of the rest of the project,
// so that it can be used as a library.
func TestPackageIsPure(t *testing.T) {
	allowed := []string{
		"bytes", "cmp", "crypto/sha256", "encoding/binary", "encoding/json", "errors", "fmt", "iter", "maps", "math",
		"slices", "strconv", "strings", "sync", "sync/atomic", "time", "unicode/utf8", "github.com/tidwall/rtree",
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, imp := range file.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", e.Name(), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", e.Name())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer"}, n.Sel.Name) {
					t.Errorf("%s reads the clock", e.Name())
				}
			}
			return true
		})
	}
	if checked < 10 {
		t.Fatalf("only %d files", checked)
	}
}

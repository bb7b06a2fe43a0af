package state_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/internal/state"
)

func circle(t testing.TB, id string, radius int) *geofence.Fence {
	t.Helper()
	fences, err := geofence.ParseFences(fmt.Appendf(nil,
		`{"type":"Feature","id":%q,"properties":{"radius_m":%d,"zone":"z"},"geometry":{"type":"Point","coordinates":[116.4,39.9]}}`, id, radius))
	if err != nil {
		t.Fatal(err)
	}
	return fences[0]
}

func put(t testing.TB, s *state.Store, fences ...*geofence.Fence) []*geofence.Fence {
	t.Helper()
	out, err := s.Versions().Put(t.Context(), fences)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPutStoresOnlyWhatChanged(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	first := put(t, s, circle(t, "a", 100), circle(t, "b.north/*", 100))
	if first[0].ID != "a" || first[0].Revision == 0 || first[1].Revision <= first[0].Revision {
		t.Fatalf("revisions %d and %d", first[0].Revision, first[1].Revision)
	}
	again := put(t, s, circle(t, "b.north/*", 100), circle(t, "a", 100))
	if again[0].Revision != first[1].Revision || again[1].Revision != first[0].Revision {
		t.Error("unchanged fences got new revisions")
	}
	changed := put(t, s, circle(t, "a", 101), circle(t, "b.north/*", 100))
	if changed[0].Revision <= first[1].Revision || changed[1].Revision != first[1].Revision {
		t.Errorf("revisions %d and %d after a change of a", changed[0].Revision, changed[1].Revision)
	}
	back := put(t, s, circle(t, "a", 100))
	if back[0].Revision <= changed[0].Revision {
		t.Error("an old content that comes back is a new version")
	}
}

func TestVersionsAreKeptOverARestart(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	put(t, s, circle(t, "a", 100))
	second := put(t, s, circle(t, "a", 200))[0]

	s = open(t, js, config(1))
	v := s.Versions()
	got := v.Version("a", second.Revision)
	if got == nil || got.Digest() != second.Digest() || got.Revision != second.Revision || !strings.Contains(string(got.Props), "zone") {
		t.Fatalf("Version = %+v, want that of revision %d", got, second.Revision)
	}
	if v.Version("nobody", 1) != nil {
		t.Error("an unknown fence has a version")
	}
	if kept := put(t, s, circle(t, "a", 200))[0]; kept.Revision != second.Revision {
		t.Errorf("the same content has revision %d after a restart, want %d", kept.Revision, second.Revision)
	}
}

// G9 over a restart: a stay that was judged with an earlier version must not
// look as if it were judged with the last.
func TestG9_EarlierVersionIsToldApart(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	first := put(t, s, circle(t, "a", 100))[0]
	second := put(t, s, circle(t, "a", 200))[0]
	old := s.Versions().Version("a", first.Revision)
	if old == second || old.Revision != first.Revision || old.ID != "a" {
		t.Errorf("earlier version %+v", old)
	}
	if again := s.Versions().Version("a", first.Revision); again != old {
		t.Error("each asker gets a copy of its own")
	}
	if last := s.Versions().Version("a", second.Revision); last != second {
		t.Error("the last version is not what Put returned: it is held twice")
	}
}

func TestSweepKeepsWhatIsNamed(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	put(t, s, circle(t, "a", 100), circle(t, "b", 100), circle(t, "c", 100))
	v := s.Versions()
	only := func(ids string) func(string) bool {
		return func(id string) bool { return strings.Contains(ids, id) }
	}
	for i, step := range []struct {
		named string
		apart time.Duration
		gone  int
	}{
		{"ab", 0, 0},         // c is unnamed for the first time
		{"abc", 0, 0},        // and named again
		{"a", 0, 0},          // now b and c
		{"ac", time.Hour, 0}, // b again, but too soon
		{"ac", 0, 1},
		{"a", 0, 0},
		{"a", 0, 1},
	} {
		n, err := v.Sweep(t.Context(), only(step.named), step.apart)
		if err != nil || n != step.gone {
			t.Fatalf("sweep %d: %d, %v; want %d", i, n, err, step.gone)
		}
	}
	if v.Version("b", 1) != nil || v.Version("c", 1) != nil || v.Version("a", 1) == nil {
		t.Error("the wrong versions went")
	}
	if got := subjects(t, js, "acme.state.fence.>"); len(got) != 1 {
		t.Errorf("stream holds %v", got)
	}
	if open(t, js, config(1)).Versions().Version("b", 1) != nil {
		t.Error("a swept version came back")
	}
}

// Replicas with the same files store each version once, and agree on its
// revision.
func TestReplicasAgreeOnRevisions(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	var fences []*geofence.Fence
	for i := range 300 {
		fences = append(fences, circle(t, fmt.Sprint("f", i), 100+i))
	}
	stores := []*state.Store{open(t, js, config(1)), open(t, js, config(1)), open(t, js, config(1))}
	got := make([][]*geofence.Fence, len(stores))
	errs := make([]error, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() { got[i], errs[i] = s.Versions().Put(t.Context(), fences) })
	}
	wg.Wait()
	for i := range stores {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		for j := range fences {
			if got[i][j].Revision != got[0][j].Revision {
				t.Fatalf("store %d gives %s revision %d, store 0 gives %d", i, fences[j].ID, got[i][j].Revision, got[0][j].Revision)
			}
		}
	}
}

func TestConflictingPutIsRefusedOnceAndThenSeen(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	one, two := open(t, js, config(1)), open(t, js, config(1))
	put(t, one, circle(t, "a", 100))
	if _, err := two.Versions().Put(t.Context(), []*geofence.Fence{circle(t, "a", 200)}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a put over an unseen version: %v", err)
	}
	second := put(t, two, circle(t, "a", 200))[0]
	if got := open(t, js, config(1)).Versions().Version("a", second.Revision); got.Digest() != second.Digest() {
		t.Error("the last put is not what is stored")
	}
}

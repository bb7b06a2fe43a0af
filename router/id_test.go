package router_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

func fence(id string, tags ...string) *geofence.Fence {
	return &geofence.Fence{ID: id, Tags: tags}
}

func TestTriggerIDIsTheDocumentedHash(t *testing.T) {
	tr := geofence.Transition{
		Kind: geofence.Dwell, Device: "fleet.van7", Fence: fence("depot"),
		At: 1_700_000_300_000, EnteredAt: 1_700_000_000_000, Dwell: 5 * time.Minute,
	}
	h := sha256.New()
	for _, field := range []string{"fleet.van7", "depot", "dwell", "1700000300000", "1700000000000", "300000"} {
		binary.Write(h, binary.BigEndian, uint32(len(field)))
		h.Write([]byte(field))
	}
	want := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:16])
	if got := router.TriggerID(&tr); got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	if len(want) != 26 {
		t.Errorf("id has %d characters, want 26", len(want))
	}
	// Written down: an id must not change from one version to the next.
	if got := router.TriggerID(&tr); got != "ALH32C5DM5TGSQAHDYSCP2PUHY" {
		t.Errorf("id of the example changed to %s", got)
	}
}

// R4: one id per transition, whoever judges it and however often.
func TestR4_IDDependsOnTheTransitionAlone(t *testing.T) {
	base := geofence.Transition{
		Kind: geofence.Exit, Device: "d", Fence: fence("f"), At: 200, EnteredAt: 100, ExitedAt: 200,
		Fix: geofence.Fix{Lat: 1, Lon: 2, TS: 200, Seq: 7, Stored: 300},
	}
	id := router.TriggerID(&base)
	for name, change := range map[string]func(*geofence.Transition){
		"position in the log":   func(tr *geofence.Transition) { tr.Fix.Seq, tr.Fix.Stored = 99, 999 },
		"revision of the fence": func(tr *geofence.Transition) { tr.Fence = tr.Fence.WithRevision(12) },
		"properties":            func(tr *geofence.Transition) { tr.Fix.Props = []byte(`{"a":1}`) },
	} {
		tr := base
		change(&tr)
		if router.TriggerID(&tr) != id {
			t.Errorf("%s changes the id", name)
		}
	}
	ids := map[string]string{id: "the transition itself"}
	for name, change := range map[string]func(*geofence.Transition){
		"device":     func(tr *geofence.Transition) { tr.Device = "e" },
		"fence":      func(tr *geofence.Transition) { tr.Fence = fence("g") },
		"kind":       func(tr *geofence.Transition) { tr.Kind = geofence.Enter },
		"at":         func(tr *geofence.Transition) { tr.At++ },
		"entered_at": func(tr *geofence.Transition) { tr.EnteredAt++ },
		"cause":      func(tr *geofence.Transition) { tr.Revision = 5 },
		"no fence":   func(tr *geofence.Transition) { tr.Fence = nil },
		"split":      func(tr *geofence.Transition) { tr.Device, tr.Fence = "df", fence("") },
		"dwell 1":    func(tr *geofence.Transition) { tr.Kind, tr.Dwell = geofence.Dwell, time.Second },
		"dwell 2":    func(tr *geofence.Transition) { tr.Kind, tr.Dwell = geofence.Dwell, time.Minute },
	} {
		tr := base
		change(&tr)
		got := router.TriggerID(&tr)
		if other, taken := ids[got]; taken {
			t.Errorf("%q shares its id with %q", name, other)
		}
		ids[got] = name
	}
}

func TestKindNamesGoBothWays(t *testing.T) {
	for _, kind := range router.Kinds() {
		got, ok := geofence.ParseKind(kind.String())
		if !ok || got != kind {
			t.Errorf("ParseKind of the word for %d = %d, %v", kind, got, ok)
		}
	}
	if len(router.Kinds()) != int(geofence.Silent) {
		t.Errorf("%d kinds are named, geofence has %d", len(router.Kinds()), geofence.Silent)
	}
	for _, name := range []string{"", "Enter", "left"} {
		if kind, ok := geofence.ParseKind(name); ok {
			t.Errorf("ParseKind(%q) = %d", name, kind)
		}
	}
}

package doctest_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// The trigger that docs/webhooks.md shows is what the code makes of it.
func TestWebhookBodyIsReal(t *testing.T) {
	at := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC).UnixMilli()
	tr := &geofence.Transition{
		Kind: geofence.Enter, Device: "van-1", At: at, Since: at, EnteredAt: at,
		Fence: &geofence.Fence{ID: "docks", Name: "The docks", Tags: []string{"depot"}},
		Fix:   geofence.Fix{Device: "van-1", Lat: 52.3791, Lon: 4.9003, TS: at, Has: geofence.HasSpeed, Speed: 3.2},
	}
	body := router.AppendBody(nil, "tripline", router.TriggerID(tr), router.Sequence(417, 0), tr)
	p := read(t, "docs/webhooks.md")
	i := slices.IndexFunc(p.blocks, func(b block) bool { return b.lang == "json" })
	if i < 0 {
		t.Fatal("the page shows no trigger")
	}
	var shown bytes.Buffer
	if err := json.Compact(&shown, []byte(p.blocks[i].text)); err != nil {
		t.Fatal(err)
	}
	if shown.String() != string(body) {
		t.Errorf("%s shows\n%s\nand it is\n%s", p.at(p.blocks[i].line), shown.String(), body)
	}
}

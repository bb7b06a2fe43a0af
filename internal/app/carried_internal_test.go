package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func fencesWith(t *testing.T, properties string) ([]*geofence.Fence, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "city.geojson")
	text := fmt.Sprintf(`{"type":"Feature","id":"yard","properties":{"radius_m":50,%s},"geometry":{"type":"Point","coordinates":[4,52]}}`, properties)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadFences([]string{file})
}

func TestAHeavyFenceIsRefused(t *testing.T) {
	_, err := fencesWith(t, `"manual":"`+strings.Repeat("x", maxCarried)+`"`)
	if err == nil || !strings.Contains(err.Error(), `city.geojson: fence "yard": `) || !strings.HasSuffix(err.Error(), "at most 160 KiB are allowed: shorten the properties") {
		t.Errorf("got %v", err)
	}
}

// The heaviest fence that is accepted, met by the largest location, makes a
// trigger that the least server that is accepted lets park and bury.
func TestTheHeaviestTriggerCanBeKept(t *testing.T) {
	fences, err := fencesWith(t, `"manual":"`+strings.Repeat("x", maxCarried-500)+`"`)
	if err != nil {
		t.Fatal(err)
	}
	fix := geofence.Fix{Device: strings.Repeat("d", 4000)}
	head := `{"lat":52,"lon":4,"ts":1767225600,"accuracy":1,"props":`
	props := `{"note":"` + strings.Repeat("y", ingest.MaxPayload-len(head)-len(`{"note":""}}`)) + `"}`
	if err := ingest.Decode([]byte(head+props+`}`), &fix); err != nil {
		t.Fatal(err)
	}
	tr := &geofence.Transition{Kind: geofence.Enter, Device: fix.Device, Fence: fences[0], Fix: fix}
	trigger := router.Trigger{
		ID: "id", Device: fix.Device, Fence: "yard", Kind: geofence.Enter,
		Body: router.AppendBody(nil, "tripline", "id", "1", tr),
	}

	srv := natstest.Start(t, func(o *server.Options) { o.MaxPayload = natsconn.MinPayload })
	q, err := jetqueue.Open(t.Context(), srv.Conn(t), jetqueue.Config{Consumer: "hook", MaxBytes: 16 << 20, DeadMaxBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	parked := make(chan error, 1)
	q.Park(trigger, fallback.ReasonOpen, func(_ uint64, err error) { parked <- err })
	if err := <-parked; err != nil {
		t.Errorf("park: %v", err)
	}
	letter := fallback.DeadLetter{Trigger: trigger, Reason: fallback.DeadRejected, Error: strings.Repeat("e", 10000)}
	if err := q.Bury(t.Context(), letter); err != nil {
		t.Errorf("bury: %v", err)
	}
}

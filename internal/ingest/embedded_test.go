package ingest_test

import (
	"log/slog"
	"testing"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

// openEmbedded is a source on a server in this process, as `run` has it when no
// server is configured.
func openEmbedded(t *testing.T) (*natsconn.Embedded, jetstream.JetStream, *ingest.Durable) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	e, err := natsconn.StartEmbedded(t.Context(), natsconn.EmbeddedConfig{Dir: t.TempDir(), MQTT: "127.0.0.1:0", Instance: "t"}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	nc, err := e.Dial(t.Context(), log, natsconn.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	setUp(t, js, 1)
	source, err := ingest.NewDurable(ingest.Config{Conn: nc, Patterns: patterns(t), Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	return e, js, source
}

// A phone with OwnTracks publishes to the MQTT listener of the embedded
// server, and becomes a device.
func TestOwnTracksPhoneOverMQTT(t *testing.T) {
	e, _, source := openEmbedded(t)
	r := read(t, source, 0, 0)

	phone := mqtt.NewClient(mqtt.NewClientOptions().AddBroker("tcp://" + e.MQTTAddr()).SetClientID("phone"))
	if token := phone.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatalf("connecting: %v", token.Error())
	}
	defer phone.Disconnect(100)
	for _, m := range []struct{ topic, payload string }{
		{"owntracks/ann@example.com/phone", `{"_type":"lwt","tst":1700000000}`},
		{"owntracks/ann@example.com/phone", `{"_type":"location","lat":52.5,"lon":13.4,"tst":1700000001,"vel":36,"acc":8,"tid":"ph"}`},
		{"owntracks/ann@example.com/phone/event", `{"_type":"transition"}`}, // not a subject of ours
		{"location/car.7", `{"lat":1,"lon":2,"id":"car.7"}`},
	} {
		if token := phone.Publish(m.topic, 1, false, m.payload); !token.WaitTimeout(patience) || token.Error() != nil {
			t.Fatalf("publishing: %v", token.Error())
		}
	}
	if m := r.next(t); m.Kind != router.RefusedMessage {
		t.Fatalf("the last will: got %+v", m)
	}
	m := r.next(t)
	f := m.Fix
	if m.Kind != router.FixMessage || f.Device != "ann@example//com.phone" || f.Lat != 52.5 || f.Lon != 13.4 ||
		f.TS != 1_700_000_001_000 || f.Speed != 10 || f.Accuracy != 8 || f.Has != geofence.HasSpeed|geofence.HasAccuracy {
		t.Fatalf("the location: got %+v", m)
	}
	if m := r.next(t); m.Kind != router.FixMessage || m.Fix.Device != "car//7" {
		t.Fatalf("the JSON over MQTT: got %+v", m)
	}
}

func TestR15_ReadGoesOnAfterARestartOfTheEmbeddedServer(t *testing.T) {
	e, js, source := openEmbedded(t)
	r := read(t, source, 0, 0)
	store := func() (err error) {
		_, err = js.Publish(t.Context(), "location.a", []byte(location(1)))
		return err
	}
	for i := range 3 {
		eventually(t, "a location is stored", func() bool { return store() == nil })
		if m := r.next(t); m.Seq != uint64(i+1) {
			t.Fatalf("got sequence %d, want %d", m.Seq, i+1)
		}
		if err := e.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

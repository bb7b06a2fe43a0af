package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func TestParseDelivery(t *testing.T) {
	want := delivery{stream: 105, consumer: 7, stored: 1790000000123}
	for _, reply := range []string{
		"$JS.ACK.S.read-0-X.1.105.7.1790000000123456789.3",
		"$JS.ACK.hub.AcCoUnT.S.read-0-X.1.105.7.1790000000123456789.3",
		"$JS.ACK.hub.AcCoUnT.S.read-0-X.1.105.7.1790000000123456789.3.token",
	} {
		if got, ok := parseDelivery(reply); !ok || got != want {
			t.Errorf("%s: got %+v, %v", reply, got, ok)
		}
	}
	for _, reply := range []string{
		"", "_INBOX.x", "$JS.ACK.", "$JS.ACK.S.C.1.x.7.1.3", "$JS.ACK.S.C.1.105.7", "$JS.ACK.a.b.c.d.e.f.g.h.i.j.k.l",
	} {
		if got, ok := parseDelivery(reply); ok {
			t.Errorf("%q: got %+v", reply, got)
		}
	}
}

// The client allocates for a message; taking it out of there must not.
func TestTakingAMessageDoesNotAllocate(t *testing.T) {
	patterns, err := ParsePatterns("tripline", []string{"location.*", "owntracks.*.*"})
	if err != nil {
		t.Fatal(err)
	}
	d := &Durable{intake: newIntake(Config{Patterns: patterns, Partitions: 1})}
	r := &reader{track: newTrack(d, 0, 0), puller: &puller{d: d}}
	msg := &nats.Msg{
		Subject: "loc.3.owntracks.ann.phone",
		Reply:   "$JS.ACK.S.read-0-X.1.1.1.1790000000123456789.3",
		Data:    []byte(`{"lat":39.906217,"lon":116.391276,"ts":1790000000123,"accuracy":4.5}`),
	}
	allocs := testing.AllocsPerRun(1000, func() {
		r.delivered, r.next = 0, 1
		at, ok, err := r.accept(msg)
		if !ok || err != nil {
			t.Fatal(err)
		}
		r.fill(at, msg)
		if m := r.filling.Messages[0]; m.Kind != router.FixMessage || m.Fix.Device != "ann.phone" {
			t.Fatalf("got %+v", m)
		}
		r.filling.Release()
		r.filling = r.batches.get()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per message", allocs)
	}
}

func TestStatusMessages(t *testing.T) {
	for _, tc := range []struct {
		status  string
		header  nats.Header
		asked   int // what is left of 100
		session bool
	}{
		{"100", nats.Header{"Nats-Last-Consumer": {"5"}}, 100, true},
		{"100", nats.Header{"Nats-Last-Consumer": {"6"}}, 100, false},
		{"408", nats.Header{"Nats-Pending-Messages": {"30"}}, 70, true},
		{"409", nats.Header{"Nats-Pending-Messages": {"300"}, "Description": {"Batch Completed"}}, 0, true},
		{"409", nats.Header{"Description": {"Consumer Deleted"}}, 100, false},
		{"409", nats.Header{"Description": {"Leadership Change"}}, 100, false},
		{"404", nil, 100, false},
		{"503", nil, 100, false},
	} {
		r := &puller{asked: 100, delivered: 5}
		if err := r.status(tc.status, tc.header); (err == nil) != tc.session || r.asked != tc.asked {
			t.Errorf("%s %v: got %v, %d asked", tc.status, tc.header, err, r.asked)
		}
	}
}

func TestR15_AReaderThatHearsNothingIsDead(t *testing.T) {
	server := natstest.Start(t)
	d := &Durable{intake: intake{nc: server.Conn(t)}, pull: defaultPull(1 << 20)}
	d.pull.silence = 50 * time.Millisecond
	r := &reader{
		track:  newTrack(d, 0, 0),
		out:    make(chan *router.Batch),
		puller: &puller{d: d, msgs: make(chan *nats.Msg), request: &nats.Msg{Subject: "nobody.listens"}},
	}
	began := time.Now()
	if err := r.loop(t.Context(), nil); !errors.Is(err, errSilent) {
		t.Fatalf("got %v", err)
	}
	if after := time.Since(began); after < d.pull.silence {
		t.Fatalf("given up after %v", after)
	}

	// It is not the consumer that is silent while nobody takes what was read.
	r.filling.Messages = r.filling.Messages[:cap(r.filling.Messages)]
	ctx, cancel := context.WithTimeout(t.Context(), 5*d.pull.silence)
	defer cancel()
	if err := r.loop(ctx, nil); err != nil {
		t.Fatalf("got %v", err)
	}
}

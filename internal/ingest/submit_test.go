package ingest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

// run runs a source until the test ends, and returns once it has subscribed.
func run(t testing.TB, conn *nats.Conn, ready string, source interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	eventually(t, "a subscription to "+ready, func() bool {
		_, err := conn.Request(ready, []byte("{}"), patience)
		return err == nil
	})
}

const probe = namespace + ".submit.a.b.c.d" // refused, so answered at once

func submit(t testing.TB, conn *nats.Conn, device, payload string) router.Answer {
	t.Helper()
	reply, err := conn.Request(namespace+".submit."+device, []byte(payload), patience)
	if err != nil {
		t.Fatalf("submit of %s: %v", device, err)
	}
	return answer(t, reply)
}

func answer(t testing.TB, reply *nats.Msg) router.Answer {
	t.Helper()
	var a router.Answer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		t.Fatalf("answer %q: %v", reply.Data, err)
	}
	return a
}

func TestSubmitIsStoredAndAnsweredByWhoeverReadsIt(t *testing.T) {
	d := newDurable(t, 1)
	conn := d.Conn(t)
	run(t, conn, probe, d.source)
	r := read(t, d.source, 0, 0)
	go func() {
		for m := range 2 {
			got := (<-r.out)
			for _, msg := range got.Messages {
				d.source.Answer(msg.Reply, router.Answer{OK: true, Seq: msg.Seq, Transitions: m})
			}
			got.Release()
		}
	}()
	if a := submit(t, conn, "car-7", location(1)); !a.OK || a.Seq != 1 || a.Transitions != 0 {
		t.Fatalf("got %+v", a)
	}
	if a := submit(t, conn, "ann.phone", location(1)); !a.OK || a.Seq != 2 || a.Transitions != 1 {
		t.Fatalf("got %+v", a)
	}
	stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
	if err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[uint64]string{1: "loc.0.location.car-7", 2: "loc.0.owntracks.ann.phone"} {
		msg, err := stream.GetMsg(t.Context(), seq)
		if err != nil || msg.Subject != want || string(msg.Data) != location(1) {
			t.Fatalf("stored %v, %v; want it on %s", msg, err, want)
		}
	}
}

func TestSubmitOfABadLocationIsAnsweredAndNotStored(t *testing.T) {
	d := newDurable(t, 1)
	conn := d.Conn(t)
	run(t, conn, probe, d.source)
	for _, tc := range []struct{ device, payload, reason, text string }{
		{"car-7", `{"lat":116.3,"lon":39.9}`, "range", "swapped"},
		{"car-7", `{"lat":1,"lon":2,"id":"car-8"}`, "device", "car-8"},
		{"car-7", `not json`, "malformed", "byte 0"},
		{"car-7", `{"_type":"lwt"}`, "ignored", "no location"},
		{"a.b.c", `{"lat":1,"lon":2}`, "device", "1 (location.*) or 2 (owntracks.*.*)"},
	} {
		a := submit(t, conn, tc.device, tc.payload)
		if a.OK || a.Reason != tc.reason || !strings.Contains(a.Error, tc.text) {
			t.Errorf("%s of %s: got %+v", tc.payload, tc.device, a)
		}
	}
	stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.LastSeq; n != 0 {
		t.Fatalf("%d messages were stored", n)
	}
}

func TestSubmitSaysThatTheStreamIsFull(t *testing.T) {
	d := newDurable(t, 1)
	err := ingest.SetUpStream(t.Context(), d.js, ingest.StreamConfig{Patterns: patterns(t), Partitions: 1, MaxBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	conn := d.Conn(t)
	run(t, conn, probe, d.source)
	for range 50 {
		if _, err := d.js.Publish(t.Context(), "location.a", []byte(location(0))); err != nil {
			break
		}
	}
	if a := submit(t, conn, "car-7", location(1)); a.OK || a.Reason != "full" {
		t.Fatalf("got %+v", a)
	}
}

func TestSubmitSaysThatNothingStoresIt(t *testing.T) {
	d := newDurable(t, 1)
	conn := d.Conn(t)
	run(t, conn, probe, d.source)
	if err := d.js.DeleteStream(t.Context(), ingest.StreamName(namespace)); err != nil {
		t.Fatal(err)
	}
	if a := submit(t, conn, "car-7", location(1)); a.OK || a.Reason != "unavailable" || a.Error == "" {
		t.Fatalf("got %+v", a)
	}
}

func TestSubmitIsTakenByOneOfSeveralReplicas(t *testing.T) {
	d := newDurable(t, 1)
	conn := d.Conn(t)
	run(t, conn, probe, d.source)
	run(t, conn, probe, d.open(t, 1))
	for i := range 20 {
		if err := conn.Publish(namespace+".submit.car-7", []byte(location(i))); err != nil {
			t.Fatal(err)
		}
	}
	r := read(t, d.source, 0, 0)
	seen := map[int64]int{}
	for range 20 {
		seen[r.next(t).Fix.TS]++
	}
	if len(seen) != 20 {
		t.Fatalf("20 submits became %d locations", len(seen))
	}
}

func TestAReplySubjectFromTheStreamIsHeldBack(t *testing.T) {
	d := newDurable(t, 1)
	for _, reply := range []string{"$JS.API.STREAM.DELETE.X", "tripline.submit.a", "location.a", "a.*", "_INBOX.good"} {
		msg := nats.NewMsg("location.a")
		msg.Header["Tripline-Reply"] = []string{reply}
		msg.Data = []byte(location(1))
		if _, err := d.js.PublishMsg(t.Context(), msg, jetstream.WithMsgID(reply)); err != nil {
			t.Fatal(err)
		}
	}
	r := read(t, d.source, 0, 0)
	for _, want := range []string{"", "", "", "", "_INBOX.good"} {
		if m := r.next(t); m.Reply != want {
			t.Errorf("got reply %q, want %q", m.Reply, want)
		}
	}
}

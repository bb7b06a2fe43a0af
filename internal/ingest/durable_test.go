package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

func TestDurableReadsEachPartitionInOrder(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		const partitions, devices, fixes = 4, 10, 50
		d := newDurable(t, partitions, shared)
		for i := range fixes {
			for dev := range devices {
				d.store(t, fmt.Sprintf("location.dev-%d", dev), location(i))
			}
		}
		total := 0
		for p := range partitions {
			r := read(t, d.source, p, 0)
			mine := 0
			for dev := range devices {
				if router.PartitionOf(fmt.Sprintf("location.dev-%d", dev), partitions) == p {
					mine++
				}
			}
			seen := map[string]int{}
			var last router.Message
			for range mine * fixes {
				m := r.next(t)
				if m.Kind != router.FixMessage || m.Seq <= last.Seq || m.Stored < last.Stored ||
					m.Fix.Seq != m.Seq || m.Fix.Stored != m.Stored {
					t.Fatalf("partition %d: got %+v after %+v", p, m, last)
				}
				if want := 1_700_000_000_000 + int64(seen[m.Fix.Device]); m.Fix.TS != want {
					t.Fatalf("%s: fix of %d, want %d", m.Fix.Device, m.Fix.TS, want)
				}
				seen[m.Fix.Device]++
				last = m
				total++
			}
			if len(seen) != mine {
				t.Fatalf("partition %d has %d devices, want %d", p, len(seen), mine)
			}
		}
		if total != devices*fixes {
			t.Fatalf("read %d fixes, want %d", total, devices*fixes)
		}
	})
}

func TestDurableReadsFromAPosition(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		for i := range 10 {
			d.store(t, "location.a", location(i))
		}
		r := read(t, d.source, 0, 7)
		if m := r.next(t); m.Seq != 7 || m.Fix.TS != 1_700_000_000_006 {
			t.Fatalf("got %+v", m)
		}
	})
}

func TestDurableCountsWhatTheLogHasLost(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		for i := range 10 {
			d.store(t, "location.a", location(i))
		}
		stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(8)); err != nil {
			t.Fatal(err)
		}
		if m := read(t, d.source, 0, 3).next(t); m.Seq != 8 {
			t.Fatalf("got sequence %d, want 8", m.Seq)
		}
		if n := d.told.get(func(w *told) int { return int(w.lost) }); n != 5 {
			t.Fatalf("lost %d, want 5", n)
		}
	})
}

func TestDurableReadsFromNothingWithoutALoss(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		r := read(t, d.source, 0, 0)
		d.store(t, "location.a", location(0))
		if m := r.next(t); m.Seq != 1 {
			t.Fatalf("got %+v", m)
		}
		if n := d.told.get(func(w *told) int { return int(w.lost) }); n != 0 {
			t.Fatalf("lost %d", n)
		}
	})
}

func TestDurableRefusesBadFixesAndGoesOn(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		rejected := listen(t, d.Conn(t), namespace+".rejected.>")
		d.store(t, "location.a", `{"lat":116.3,"lon":39.9}`)
		d.store(t, "owntracks.ann.phone", `{"_type":"lwt"}`)
		d.store(t, "location."+strings.Repeat("x", ingest.MaxDevice+1), location(1))
		d.store(t, "location.a", location(2))
		d.store(t, "location.*", location(3)) // as an MQTT client may have it stored: no partition has it
		d.store(t, "location.a", location(4))

		r := read(t, d.source, 0, 0)
		for i, want := range []router.MessageKind{router.RefusedMessage, router.RefusedMessage, router.RefusedMessage, router.FixMessage} {
			if m := r.next(t); m.Kind != want || m.Seq != uint64(i+1) || m.Stored == 0 {
				t.Fatalf("message %d: got %+v", i+1, m)
			}
		}
		if m := r.next(t); m.Seq != 6 || m.Kind != router.FixMessage {
			t.Fatalf("got %+v", m)
		}
		first, err := rejected.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if first.Subject != namespace+".rejected.range" || string(first.Data) != `{"lat":116.3,"lon":39.9}` ||
			!strings.Contains(first.Header.Get(ingest.DetailHeader), "swapped") ||
			first.Header.Get(ingest.SubjectHeader) != "location.a" || first.Header.Get(ingest.SequenceHeader) != "1" {
			t.Fatalf("got %s %q %v", first.Subject, first.Data, first.Header)
		}
		second, err := rejected.NextMsg(patience)
		if err != nil || second.Subject != namespace+".rejected.device" {
			t.Fatalf("got %v, %v", second, err)
		}
		d.told.mu.Lock()
		defer d.told.mu.Unlock()
		if d.told.refused[ingest.Range] != 1 || d.told.refused[ingest.Device] != 1 || d.told.ignored != 1 {
			t.Fatalf("counted %v and %d ignored", d.told.refused, d.told.ignored)
		}
	})
}

func TestDurableTicksReachTheirPartition(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		const partitions = 16
		d := newDurable(t, partitions, shared)
		for p := range partitions {
			if err := d.source.Tick(t.Context(), p, fmt.Sprint("nonce-", p)); err != nil {
				t.Fatal(err)
			}
		}
		for p := range partitions {
			m := read(t, d.source, p, 0).next(t)
			if m.Kind != router.TickMessage || m.Nonce != fmt.Sprint("nonce-", p) || m.Stored == 0 {
				t.Fatalf("partition %d: got %+v", p, m)
			}
		}
	})
}

func TestDurableCarriesTheTraceContext(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		d := newDurable(t, 1, shared)
		for _, value := range []string{trace, "00-x\r\n"} {
			msg := nats.NewMsg("location.a")
			msg.Header.Set("traceparent", value)
			msg.Data = []byte(location(0))
			if _, err := d.js.PublishMsg(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
		}
		r := read(t, d.source, 0, 0)
		if m := r.next(t); m.Traceparent != trace {
			t.Fatalf("got %q", m.Traceparent)
		}
		if m := r.next(t); m.Traceparent != "" {
			t.Fatalf("a malformed one came through: %q", m.Traceparent)
		}
	})
}

func TestR15_ReadGoesOnAfterAServerRestart(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		r := read(t, d.source, 0, 0)
		for i := range 3 {
			d.store(t, "location.a", location(i))
			r.next(t)
		}
		d.Restart(t)
		eventually(t, "a publish after the restart", func() bool {
			_, err := d.js.Publish(t.Context(), "location.a", []byte(location(3)))
			return err == nil
		})
		began := time.Now()
		if m := r.next(t); m.Seq != 4 {
			t.Fatalf("got sequence %d, want 4", m.Seq)
		}
		t.Logf("resumed %v after the first publish, having met %v", time.Since(began), d.told.rebuilt)
	})
}

func TestR15_ReadGoesOnAfterItsConsumerWasDeleted(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		r := read(t, d.source, 0, 0)
		for i := range 3 {
			d.store(t, "location.a", location(i))
			if m := r.next(t); m.Seq != uint64(i+1) {
				t.Fatalf("got sequence %d, want %d", m.Seq, i+1)
			}
			stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
			if err != nil {
				t.Fatal(err)
			}
			deleted := 0
			for name := range stream.ConsumerNames(t.Context()).Name() {
				if err := stream.DeleteConsumer(t.Context(), name); err == nil {
					deleted++
				}
			}
			if deleted == 0 {
				t.Fatal("there was no consumer")
			}
			eventually(t, "the reader noticed", func() bool {
				return d.told.get(func(w *told) int { return len(w.rebuilt) }) > i
			})
		}
		d.store(t, "location.a", location(4))
		if m := r.next(t); m.Seq != 4 {
			t.Fatalf("got sequence %d, want 4", m.Seq)
		}
	})
}

func TestDurableStopsWithoutLeavingAConsumer(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		d.store(t, "location.a", location(0))
		r := read(t, d.source, 0, 0)
		r.next(t)
		r.stop()
		eventually(t, "the consumer is gone", func() bool {
			stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
			return err == nil && stream.CachedInfo().State.Consumers == 0
		})
	})
}

func TestDurableBoundsWhatWaits(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		const stored = 20_000
		d := newDurable(t, 1, shared)
		for i := range stored {
			if _, err := d.js.PublishAsync("location.a", []byte(location(i)), jetstream.WithStallWait(patience)); err != nil {
				t.Fatal(err)
			}
		}
		<-d.js.PublishAsyncComplete()
		r := read(t, d.source, 0, 0)
		first := r.next(t)
		// Nobody takes a batch for longer than any heartbeat; nothing gets lost.
		stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
		if err != nil {
			t.Fatal(err)
		}
		var delivered uint64
		for range 2 {
			for info := range stream.ListConsumers(t.Context()).Info() {
				delivered = info.Delivered.Consumer
			}
		}
		if delivered > 3000 {
			t.Fatalf("%d messages were sent to a reader that nobody reads from", delivered)
		}
		for last := first; last.Seq < stored; {
			m := r.next(t)
			if m.Seq != last.Seq+1 {
				t.Fatalf("%d came after %d", m.Seq, last.Seq)
			}
			last = m
		}
		if n := d.told.get(func(w *told) int { return len(w.rebuilt) }); n != 0 {
			t.Fatalf("the reader was rebuilt %d times", n)
		}
	})
}

func TestReadRefusesAStreamThatWasMadeAnew(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		d.store(t, "location.a", location(0))
		err := d.source.Read(t.Context(), 0, 500, make(chan *router.Batch))
		if err == nil || !strings.Contains(err.Error(), "ends at 1") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestReadEndsWithItsConnection(t *testing.T) {
	eachWay(t, func(t *testing.T, shared bool) {
		d := newDurable(t, 1, shared)
		conn := d.Conn(t)
		source, err := ingest.NewDurable(ingest.Config{Conn: conn, Patterns: patterns(t), Partitions: 1, Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		d.store(t, "location.a", location(0))
		out, done := make(chan *router.Batch), make(chan error, 1)
		go func() { done <- source.Read(t.Context(), 0, 0, out) }()
		<-out
		conn.Close()
		select {
		case err := <-done:
			if err == nil {
				t.Fatal("no error")
			}
		case <-time.After(patience):
			t.Fatal("it reads on")
		}
	})
}

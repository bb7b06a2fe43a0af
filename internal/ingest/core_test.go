package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func newCore(t testing.TB, partitions int) (*natstest.Server, *ingest.Core, *told) {
	t.Helper()
	server, w := natstest.Start(t), &told{}
	source, err := ingest.NewCore(ingest.Config{
		Conn: server.Conn(t), Patterns: patterns(t), Partitions: partitions, Hooks: w.hooks(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return server, source, w
}

func TestCoreReadsWhatIsPublishedMeanwhile(t *testing.T) {
	const partitions, devices, fixes = 4, 8, 30
	server, source, w := newCore(t, partitions)
	conn := server.Conn(t)
	readers := make([]*reading, partitions)
	for p := range readers {
		readers[p] = read(t, source, p, 0)
	}
	for p, r := range readers {
		eventually(t, "the partition is read", func() bool { return source.Tick(t.Context(), p, "") == nil })
		r.next(t)
	}
	run(t, conn, probe, source)
	before := time.Now()
	perPartition := map[int]int{}
	for i := range fixes {
		for dev := range devices {
			subject := fmt.Sprintf("location.dev-%d", dev)
			perPartition[router.PartitionOf(subject, partitions)]++
			if err := conn.Publish(subject, []byte(location(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for p, r := range readers {
		seen := map[string]int64{}
		var last router.Message
		for range perPartition[p] {
			m := r.next(t)
			if m.Kind != router.FixMessage || m.Seq <= last.Seq || m.Stored < last.Stored {
				t.Fatalf("got %+v after %+v", m, last)
			}
			if at := time.UnixMicro(int64(m.Seq)); at.Before(before.Truncate(time.Microsecond)) || at.After(time.Now().Add(time.Second)) {
				t.Fatalf("position %d is not the receipt time", m.Seq)
			}
			if want := 1_700_000_000_000 + seen[m.Fix.Device]; m.Fix.TS != want {
				t.Fatalf("%s: fix of %d, want %d", m.Fix.Device, m.Fix.TS, want)
			}
			seen[m.Fix.Device]++
			last = m
		}
	}
	if w.get(func(w *told) int { return w.dropped }) != 0 {
		t.Fatal("something was dropped")
	}
}

func TestCorePositionsRiseAcrossRuns(t *testing.T) {
	server, source, _ := newCore(t, 1)
	conn := server.Conn(t)
	from := uint64(time.Now().Add(time.Hour).UnixMicro()) // the clock was set back since
	r := read(t, source, 0, from)
	eventually(t, "the partition is read", func() bool { return source.Tick(t.Context(), 0, "") == nil })
	r.next(t)
	run(t, conn, probe, source)
	for i := range 3 {
		if err := conn.Publish("location.a", []byte(location(i))); err != nil {
			t.Fatal(err)
		}
		if m := r.next(t); m.Seq != from+1+uint64(i) || m.Stored > time.Now().UnixMilli() {
			t.Fatalf("got %+v", m)
		}
	}
}

func TestCoreAnswersRequests(t *testing.T) {
	server, source, w := newCore(t, 2)
	conn := server.Conn(t)
	for p := range 2 {
		ctx := t.Context()
		out := make(chan *router.Batch)
		done := make(chan error, 1)
		go func() { done <- source.Read(ctx, p, 0, out) }()
		go func() {
			for {
				select {
				case batch := <-out:
					for _, m := range batch.Messages {
						if m.Kind == router.FixMessage {
							source.Answer(m.Reply, router.Answer{OK: true, Seq: m.Seq, Transitions: 3})
						}
					}
					batch.Release()
				case <-ctx.Done():
					return
				}
			}
		}()
		t.Cleanup(func() { <-done })
		eventually(t, "the partition is read", func() bool { return source.Tick(ctx, p, "") == nil })
	}
	run(t, conn, probe, source)
	request := func(subject, payload string) router.Answer {
		reply, err := conn.Request(subject, []byte(payload), patience)
		if err != nil {
			t.Fatal(err)
		}
		return answer(t, reply)
	}
	for _, subject := range []string{"location.a", "owntracks.ann.phone", namespace + ".submit.a", namespace + ".submit.ann.phone"} {
		if a := request(subject, location(1)); !a.OK || a.Seq == 0 || a.Transitions != 3 {
			t.Errorf("%s: got %+v", subject, a)
		}
	}
	for _, subject := range []string{"location.a", namespace + ".submit.a"} {
		if a := request(subject, `{"lat":95,"lon":0}`); a.OK || a.Reason != "range" {
			t.Errorf("%s: got %+v", subject, a)
		}
	}
	if n := w.get(func(w *told) int { return w.refused[ingest.Range] }); n != 2 {
		t.Errorf("counted %d refused", n)
	}
}

func TestCoreTicksComeBack(t *testing.T) {
	_, source, _ := newCore(t, 2)
	if err := source.Tick(t.Context(), 1, "n"); err == nil {
		t.Fatal("a tick that nobody reads was taken")
	}
	r := read(t, source, 1, 0)
	eventually(t, "the reader takes ticks", func() bool { return source.Tick(t.Context(), 1, "n") == nil })
	if m := r.next(t); m.Kind != router.TickMessage || m.Nonce != "n" || m.Seq == 0 || m.Stored == 0 {
		t.Fatalf("got %+v", m)
	}
}

func TestCoreDropsForAPartitionThatIsBehindOnly(t *testing.T) {
	server, source, w := newCore(t, 2)
	conn := server.Conn(t)
	var subjects [2]string
	for i := 0; subjects[0] == "" || subjects[1] == ""; i++ {
		s := fmt.Sprintf("location.dev-%d", i)
		subjects[router.PartitionOf(s, 2)] = s
	}
	behind, keeping := read(t, source, 0, 0), read(t, source, 1, 0)
	for p := range 2 {
		eventually(t, "the partition is read", func() bool { return source.Tick(t.Context(), p, "") == nil })
	}
	behind.next(t)
	keeping.next(t)
	run(t, conn, probe, source)
	for i := range 20_000 {
		if err := conn.Publish(subjects[0], []byte(location(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Publish(subjects[1], []byte(location(7))); err != nil {
		t.Fatal(err)
	}
	if m := keeping.next(t); m.Fix.TS != 1_700_000_000_007 {
		t.Fatalf("got %+v", m)
	}
	dropped := 0
	eventually(t, "drops were counted", func() bool {
		dropped = w.get(func(w *told) int { return w.dropped })
		return dropped > 10_000
	})
	// What was kept is still in order.
	last := behind.next(t)
	for range 20_000 - dropped - 1 {
		m := behind.next(t)
		if m.Fix.TS <= last.Fix.TS {
			t.Fatalf("%d came after %d", m.Fix.TS, last.Fix.TS)
		}
		last = m
	}
}

func TestR15_CoreGoesOnAfterAServerRestart(t *testing.T) {
	server, source, _ := newCore(t, 1)
	conn := server.Conn(t)
	r := read(t, source, 0, 0)
	run(t, conn, probe, source)
	server.Restart(t)
	eventually(t, "a location comes through", func() bool {
		if err := conn.Publish("location.a", []byte(location(1))); err != nil {
			return false
		}
		_ = conn.FlushTimeout(time.Second)
		select {
		case batch := <-r.out:
			batch.Release()
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
}

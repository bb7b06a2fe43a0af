package jetqueue_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
)

func TestParkedTriggerComesBackWhole(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	want := trigger("truck.7", 1)
	before := time.Now().Truncate(time.Millisecond)
	seq := mustPark(t, q, want)

	it, ok, err := q.Head(t.Context(), slotOf(want), 0)
	if err != nil || !ok {
		t.Fatalf("head: %v, %v", ok, err)
	}
	if !reflect.DeepEqual(it.Trigger, want) {
		t.Errorf("trigger came back as\n%+v, want\n%+v", it.Trigger, want)
	}
	if it.Seq != seq || it.Reason != fallback.ReasonOpen {
		t.Errorf("seq %d reason %s, want %d %s", it.Seq, it.Reason, seq, fallback.ReasonOpen)
	}
	if it.Parked.Before(before) || it.Parked.After(time.Now()) {
		t.Errorf("parked at %v, want between %v and now", it.Parked, before)
	}
	js, _ := jetstream.New(nc)
	s, err := js.Stream(t.Context(), "TRIPLINE_FALLBACK_dispatch")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.Bytes; uint64(it.Size) != got {
		t.Errorf("size %d, the server counts %d", it.Size, got)
	}
	if subjects := s.CachedInfo().Config.Subjects; !reflect.DeepEqual(subjects, []string{"tripline.fallback.dispatch.*.*"}) {
		t.Errorf("stream takes %q", subjects)
	}
}

func TestStreamIsMadeAsDesigned(t *testing.T) {
	_, nc := startServer(t)
	open(t, nc)
	js, _ := jetstream.New(nc)
	for name, maxBytes := range map[string]int64{"TRIPLINE_FALLBACK_dispatch": 64 << 20, "TRIPLINE_DEAD": 1 << 20} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if c.Storage != jetstream.FileStorage || c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardNew {
			t.Errorf("%s: %v storage, %v retention, %v discard", name, c.Storage, c.Retention, c.Discard)
		}
		if c.AllowDirect {
			t.Errorf("%s: followers would answer gets", name)
		}
		if c.MaxBytes != maxBytes {
			t.Errorf("%s: max bytes %d, want %d", name, c.MaxBytes, maxBytes)
		}
	}
}

func TestHeadWalksASlotInOrder(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	var seqs []uint64
	for n := range 5 {
		seqs = append(seqs, mustPark(t, q, trigger("a", n)))
		mustPark(t, q, trigger("b", n)) // another slot, in between
	}
	after := uint64(0)
	for n, want := range seqs {
		it, ok, err := q.Head(t.Context(), slotOf(trigger("a", 0)), after)
		if err != nil || !ok || it.Seq != want || it.Trigger.ID != fmt.Sprintf("a-%d", n) {
			t.Fatalf("head after %d: %v %v %v, want a-%d at %d", after, it.Trigger.ID, ok, err, n, want)
		}
		after = it.Seq
	}
	// The rest is settled but not deleted: nothing comes after it.
	if it, ok, err := q.Head(t.Context(), slotOf(trigger("a", 0)), after); ok || err != nil {
		t.Fatalf("head after the last: %v %v %v", it, ok, err)
	}
}

func TestDeleteTwiceIsNoError(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	first := mustPark(t, q, trigger("a", 1))
	last := mustPark(t, q, trigger("a", 2))
	for _, seq := range []uint64{first, first, last, last, last + 100} {
		if err := q.Delete(t.Context(), seq); err != nil {
			t.Errorf("delete %d: %v", seq, err)
		}
	}
	if _, ok, err := q.Head(t.Context(), slotOf(trigger("a", 0)), 0); ok || err != nil {
		t.Errorf("head of the emptied slot: %v, %v", ok, err)
	}
	if _, ok, err := q.Oldest(t.Context()); ok || err != nil {
		t.Errorf("oldest of the emptied queue: %v, %v", ok, err)
	}
}

func TestTableCountsSlotsOfOnePartition(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	want := map[fallback.Slot]int{}
	for n := range 40 {
		tr := trigger(fmt.Sprintf("d%d", n%10), n)
		mustPark(t, q, tr)
		want[slotOf(tr)]++
		tr.Partition, tr.ID = 13, tr.ID+"-other"
		mustPark(t, q, tr)
	}
	got, err := q.Table(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("table %v, want %v", got, want)
	}
	if got, err := q.Table(t.Context(), 1); err != nil || len(got) != 0 {
		t.Errorf("table of partition 1: %v, %v; 13 is another", got, err)
	}
}

// A lost answer is repeated with the same id, and stored once.
func TestRepeatedParkIsStoredOnce(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	tr := trigger("a", 1)
	first := await(t, park(q, tr, fallback.ReasonFailed))
	again := await(t, park(q, tr, fallback.ReasonFailed))
	if first.err != nil || !errors.Is(again.err, fallback.ErrDuplicate) || again.seq != first.seq {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if table, err := q.Table(t.Context(), 3); err != nil || table[slotOf(tr)] != 1 {
		t.Errorf("table %v, %v", table, err)
	}
}

// A redriven trigger is stored although its id is known from the first time,
// and again when it is redriven once more; a repeat of one redrive is not.
func TestRedriveIsNotSwallowedByDeduplication(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	tr := trigger("a", 1)
	if err := q.Delete(t.Context(), mustPark(t, q, tr)); err != nil {
		t.Fatal(err)
	}
	tr.Redriven = true
	for round := range 2 {
		a := await(t, park(q, tr, fallback.ReasonRedrive))
		if a.err != nil {
			t.Fatalf("redrive %d: %v", round, a.err)
		}
		it, ok, err := q.Head(t.Context(), slotOf(tr), 0)
		if err != nil || !ok || !it.Trigger.Redriven || it.Trigger.ID != tr.ID {
			t.Fatalf("redrive %d: head %+v, %v, %v", round, it.Trigger, ok, err)
		}
		if err := q.Delete(t.Context(), a.seq); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullQueueSaysSoAndNamesTheKey(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.MaxBytes = 4 << 10 })
	var full answer
	var stored []uint64
	for n := 0; full.err == nil && n < 100; n++ {
		a := await(t, park(q, trigger("a", n), fallback.ReasonOpen))
		if a.err != nil {
			full = a
		} else {
			stored = append(stored, a.seq)
		}
	}
	if !errors.Is(full.err, fallback.ErrFull) {
		t.Fatalf("parked into a full queue: %v", full.err)
	}
	for _, part := range []string{"TRIPLINE_FALLBACK_dispatch", "consumers.dispatch.fallback.max_bytes"} {
		if !strings.Contains(full.err.Error(), part) {
			t.Errorf("error %q doesn't name %s", full.err, part)
		}
	}
	// What was stored is untouched, and a delivery makes room.
	if it, ok, err := q.Oldest(t.Context()); err != nil || !ok || it.Seq != stored[0] {
		t.Errorf("oldest: %+v, %v, %v", it.Seq, ok, err)
	}
	for _, seq := range stored[:2] {
		if err := q.Delete(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	mustPark(t, q, trigger("a", 1000))
}

func TestParkedTriggersSurviveARestartOfTheServer(t *testing.T) {
	s, nc := startServer(t)
	q := open(t, nc)
	want := map[fallback.Slot]int{}
	for n := range 20 {
		tr := trigger(fmt.Sprintf("d%d", n%4), n)
		mustPark(t, q, tr)
		want[slotOf(tr)]++
	}
	s.Restart(t)
	eventually(t, "the table is back", func() bool {
		got, err := q.Table(t.Context(), 3)
		return err == nil && maps.Equal(got, want)
	})
	// A park of before is known, a new one is stored.
	if a := await(t, park(q, trigger("d0", 0), fallback.ReasonOpen)); !errors.Is(a.err, fallback.ErrDuplicate) {
		t.Errorf("repeat after the restart: %+v", a)
	}
	mustPark(t, q, trigger("d0", 100))
}

// While the server is away parks wait for it, in order, and are sent when it
// is back.
func TestParkWaitsForTheServer(t *testing.T) {
	s, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.Timeout = patience })
	s.Stop()
	eventually(t, "the client notices", func() bool { return !nc.IsConnected() })
	var answers []<-chan answer
	for n := range 8 {
		answers = append(answers, park(q, trigger(fmt.Sprintf("d%d", n), n), fallback.ReasonOpen))
	}
	s.Restart(t)
	for n, ch := range answers {
		if a := await(t, ch); a.err != nil {
			t.Errorf("park %d: %v", n, a.err)
		}
	}
}

// A server that stays away is an error that says so, once, in time.
func TestParkGivesUpOnAServerThatStaysAway(t *testing.T) {
	s, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.Timeout = 200 * time.Millisecond })
	s.Stop()
	eventually(t, "the client notices", func() bool { return !nc.IsConnected() })
	ch := park(q, trigger("a", 1), fallback.ReasonOpen)
	a := await(t, ch)
	if a.err == nil || errors.Is(a.err, fallback.ErrFull) || errors.Is(a.err, fallback.ErrDuplicate) ||
		!strings.Contains(a.err.Error(), "TRIPLINE_FALLBACK_dispatch") {
		t.Errorf("park without a server: %v", a.err)
	}
	if _, _, err := q.Head(t.Context(), slotOf(trigger("a", 1)), 0); err == nil {
		t.Error("a head was known without a server")
	}
	if err := q.Bury(t.Context(), fallback.DeadLetter{Trigger: trigger("a", 1)}); err == nil {
		t.Error("a dead letter was stored without a server")
	}
	// What was given up on is not sent behind our back.
	s.Restart(t)
	eventually(t, "the queue is back", func() bool {
		return await(t, park(q, trigger("b", 1), fallback.ReasonOpen)).err == nil
	})
	if it, ok, err := q.Oldest(t.Context()); err != nil || !ok || it.Trigger.ID != "b-1" {
		t.Errorf("oldest: %s, %v, %v", it.Trigger.ID, ok, err)
	}
	select {
	case a := <-ch:
		t.Errorf("answered again: %+v", a)
	default:
	}
}

func TestCloseAnswersWhatIsOpen(t *testing.T) {
	s, nc := startServer(t)
	q := open(t, nc)
	s.Stop()
	eventually(t, "the client notices", func() bool { return !nc.IsConnected() })
	open := park(q, trigger("a", 1), fallback.ReasonOpen)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if a := await(t, open); !errors.Is(a.err, fallback.ErrClosed) {
		t.Errorf("open park at close: %v", a.err)
	}
	if a := await(t, park(q, trigger("a", 2), fallback.ReasonOpen)); !errors.Is(a.err, fallback.ErrClosed) {
		t.Errorf("park after close: %v", a.err)
	}
}

// More parks than may be in flight, from many slots at once: each is answered
// once, and each is there.
func TestParksBeyondTheInFlightBound(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.InFlight = 8 })
	const n = 500
	answers := make([]<-chan answer, n)
	for i := range n {
		answers[i] = park(q, trigger(fmt.Sprintf("d%d", i), i), fallback.ReasonOpen)
	}
	seen := map[uint64]bool{}
	for i, ch := range answers {
		a := await(t, ch)
		if a.err != nil || seen[a.seq] {
			t.Fatalf("park %d: %+v, seen before: %v", i, a, seen[a.seq])
		}
		seen[a.seq] = true
	}
	eventually(t, "usage tells the number of items", func() bool { return q.Usage().Items == n })
	js, _ := jetstream.New(nc)
	s, err := js.Stream(t.Context(), "TRIPLINE_FALLBACK_dispatch")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := q.Usage().Bytes, s.CachedInfo().State.Bytes; got != want {
		t.Errorf("usage tells %d bytes, the server %d", got, want)
	}
}

// A message that something else put into the stream is named, not skipped.
func TestForeignMessageIsNamed(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	tr := trigger("a", 1)
	js, _ := jetstream.New(nc)
	if _, err := js.Publish(t.Context(), fmt.Sprintf("tripline.fallback.dispatch.3.%d", tr.Slot), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	_, ok, err := q.Head(t.Context(), slotOf(tr), 0)
	if ok || err == nil || !strings.Contains(err.Error(), "nats stream rmm TRIPLINE_FALLBACK_dispatch 1") {
		t.Errorf("head is a foreign message: %v, %v", ok, err)
	}
}

func TestOpenTakesOverWhatIsThere(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	mustPark(t, q, trigger("a", 1))
	_ = q.Close()
	// Smaller than its content: nothing is lost, nothing more fits.
	q = open(t, nc, func(c *jetqueue.Config) { c.MaxBytes = 100 })
	if it, ok, err := q.Oldest(t.Context()); err != nil || !ok || it.Trigger.ID != "a-1" {
		t.Errorf("oldest after reopening: %v, %v, %v", it.Trigger.ID, ok, err)
	}
	if a := await(t, park(q, trigger("a", 2), fallback.ReasonOpen)); !errors.Is(a.err, fallback.ErrFull) {
		t.Errorf("park beyond the new bound: %v", a.err)
	}
	if u := q.Usage(); u.Items != 1 || u.MaxBytes != 100 {
		t.Errorf("usage %+v", u)
	}
}

func TestOpenNamesWhatStandsInItsWay(t *testing.T) {
	_, nc := startServer(t, func(o *server.Options) { o.JetStreamMaxStore = 10 << 20 })
	_, err := jetqueue.Open(t.Context(), nc, jetqueue.Config{Consumer: "big", MaxBytes: 1 << 30})
	if err == nil || !strings.Contains(err.Error(), "lower consumers.big.fallback.max_bytes") {
		t.Errorf("no room: %v", err)
	}
	js, _ := jetstream.New(nc)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "TRIPLINE_FALLBACK_mine", Subjects: []string{"mine"}, Storage: jetstream.MemoryStorage,
	}); err != nil {
		t.Fatal(err)
	}
	_, err = jetqueue.Open(t.Context(), nc, jetqueue.Config{Consumer: "mine", MaxBytes: 1 << 20})
	if err == nil || !strings.Contains(err.Error(), "TRIPLINE_FALLBACK_mine") || !strings.Contains(err.Error(), "not one of Tripline's") {
		t.Errorf("foreign stream: %v", err)
	}
	_, err = jetqueue.Open(t.Context(), nc, jetqueue.Config{Consumer: "Bad Name", Replicas: 9, MaxBytes: -1})
	for _, part := range []string{"Bad Name", "replicas 9", "max_bytes -1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v doesn't name %s", err, part)
		}
	}
}

func TestOrphansAreListedAndTakenOver(t *testing.T) {
	_, nc := startServer(t)
	for _, name := range []string{"dispatch", "removed", "gone_2"} {
		q := open(t, nc, func(c *jetqueue.Config) { c.Consumer = name; c.MaxBytes = 1 << 20 })
		mustPark(t, q, trigger("a", 1))
		_ = q.Close()
	}
	other := open(t, nc, func(c *jetqueue.Config) { c.Namespace = "other"; c.MaxBytes = 1 << 20 })
	_ = other.Close()

	list := func() (names []string) {
		t.Helper()
		orphans, err := jetqueue.Orphans(t.Context(), nc, "tripline", []string{"dispatch"})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range orphans {
			if o.Items != 1 || o.Bytes == 0 || o.Stream != jetqueue.StreamName("tripline", o.Consumer) {
				t.Errorf("orphan %+v", o)
			}
			names = append(names, o.Consumer)
		}
		return names
	}
	if got := list(); !reflect.DeepEqual(got, []string{"gone_2", "removed"}) {
		t.Errorf("orphans %q", got)
	}
	if err := jetqueue.RemoveOrphan(t.Context(), nc, "tripline", "gone_2"); err != nil {
		t.Fatal(err)
	}
	if got := list(); !reflect.DeepEqual(got, []string{"removed"}) {
		t.Errorf("orphans after a removal: %q", got)
	}
	q := open(t, nc, func(c *jetqueue.Config) { c.Consumer = "removed"; c.MaxBytes = 1 << 20 })
	if it, ok, err := q.Oldest(t.Context()); err != nil || !ok || it.Trigger.ID != "a-1" {
		t.Errorf("taken over: %v, %v, %v", it.Trigger.ID, ok, err)
	}
}

func TestTooLargeTriggerIsNamed(t *testing.T) {
	_, nc := startServer(t, func(o *server.Options) { o.MaxPayload = 4 << 10 })
	q := open(t, nc)
	tr := trigger("a", 1)
	tr.Body = make([]byte, 8<<10)
	a := await(t, park(q, tr, fallback.ReasonOpen))
	if a.err == nil || !strings.Contains(a.err.Error(), "max_payload (4096 bytes)") {
		t.Errorf("park: %v", a.err)
	}
	if err := q.Bury(t.Context(), letter(tr)); err == nil || !strings.Contains(err.Error(), "max_payload (4096 bytes)") {
		t.Errorf("bury: %v", err)
	}
}

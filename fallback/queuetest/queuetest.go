// Package queuetest holds what every [fallback.Queue] must do, as tests, and
// a queue that fails on purpose.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// Store is where a queue keeps its content.
type Store interface {
	// Open opens the queue over the store, after a restart if it has been
	// open before. The one that was open is closed.
	Open(t *testing.T) fallback.Queue
}

// Room is how many bytes the queue of a small store holds: enough for some
// triggers with a body of Body bytes, and not for a hundred.
const (
	Room = 32 << 10
	Body = 1 << 10
)

// Run holds a queue to its contract. fresh makes an empty store, one whose
// queue holds only about Room bytes if small is set.
func Run(t *testing.T, fresh func(t *testing.T, small bool) Store) {
	tests := []struct {
		name  string
		small bool
		run   func(t *testing.T, s *suite)
	}{
		{"what is parked comes back whole", false, whole},
		{"a slot is first in first out", false, firstInFirstOut},
		{"slots are apart", false, apart},
		{"a repeated park is stored once", false, repeatedPark},
		{"a redriven trigger is no repeat", false, redriven},
		{"a repeated delete is no error", false, repeatedDelete},
		{"a restart keeps everything", false, restart},
		{"a full queue refuses", true, full},
		{"what is durable is found at once", false, foundAtOnce},
		{"dead letters come back whole", false, deadWhole},
		{"a repeated bury is one letter", false, repeatedBury},
		{"an ended context is an error", false, endedContext},
		{"listings are filtered", false, filtered},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := fresh(t, test.small)
			test.run(t, &suite{T: t, store: store, Queue: store.Open(t)})
		})
	}
}

// suite is one test's queue.
type suite struct {
	*testing.T
	fallback.Queue
	store Store
}

// Trigger makes the nth trigger of a device, with a body of Body bytes.
func Trigger(device string, n int) router.Trigger {
	body := make([]byte, Body)
	copy(body, fmt.Sprintf(`{"id":"%s-%d"}`, device, n))
	return router.Trigger{
		ID: fmt.Sprintf("%s-%d", device, n), Sequence: fmt.Sprintf("%020d", n),
		Device: device, Fence: "depot " + device, Kind: geofence.Enter, At: 1_700_000_000_000 + int64(n),
		Partition: 3, Slot: router.SlotOf(device), Priority: router.High,
		Body: body, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func slotOf(t router.Trigger) fallback.Slot {
	return fallback.Slot{Partition: t.Partition, Index: t.Slot}
}

// park parks and waits for the answer.
func (s *suite) park(t router.Trigger) (uint64, error) {
	s.Helper()
	type answer struct {
		seq uint64
		err error
	}
	answers := make(chan answer, 2)
	s.Park(t, fallback.ReasonOpen, func(seq uint64, err error) { answers <- answer{seq, err} })
	select {
	case a := <-answers:
		return a.seq, a.err
	case <-time.After(30 * time.Second):
		s.Fatalf("no answer to the park of %s", t.ID)
		return 0, nil
	}
}

func (s *suite) mustPark(t router.Trigger) uint64 {
	s.Helper()
	seq, err := s.park(t)
	if err != nil {
		s.Fatalf("park %s: %v", t.ID, err)
	}
	return seq
}

// head returns the id of a slot's first item after a position, "" for none.
func (s *suite) head(slot fallback.Slot, after uint64) (string, fallback.Item) {
	s.Helper()
	item, ok, err := s.Head(s.Context(), slot, after)
	if err != nil {
		s.Fatalf("head of %v: %v", slot, err)
	}
	if !ok {
		return "", item
	}
	return item.Trigger.ID, item
}

func (s *suite) remove(seq uint64) {
	s.Helper()
	if err := s.Delete(s.Context(), seq); err != nil {
		s.Fatalf("delete %d: %v", seq, err)
	}
}

func (s *suite) table(partition int) map[fallback.Slot]int {
	s.Helper()
	table, err := s.Table(s.Context(), partition)
	if err != nil {
		s.Fatalf("table of %d: %v", partition, err)
	}
	return table
}

func whole(t *testing.T, s *suite) {
	want := Trigger("bus.7", 1)
	before := time.Now().Add(-time.Minute)
	seq := s.mustPark(want)
	_, item := s.head(slotOf(want), 0)
	want.Read = time.Time{}
	if !reflect.DeepEqual(item.Trigger, want) {
		t.Errorf("got %+v\nwant %+v", item.Trigger, want)
	}
	if item.Seq != seq || item.Reason != fallback.ReasonOpen || item.Size < Body {
		t.Errorf("seq %d reason %q size %d, want %d %q and at least %d", item.Seq, item.Reason, item.Size, seq, fallback.ReasonOpen, Body)
	}
	if item.Parked.Before(before) || item.Parked.After(time.Now().Add(time.Minute)) {
		t.Errorf("parked at %v, not now", item.Parked)
	}
	oldest, ok, err := s.Oldest(t.Context())
	if err != nil || !ok || oldest.Seq != seq {
		t.Errorf("oldest: %d %v %v, want %d", oldest.Seq, ok, err, seq)
	}
}

func firstInFirstOut(t *testing.T, s *suite) {
	var seqs []uint64
	for n := range 10 {
		seqs = append(seqs, s.mustPark(Trigger("a", n)))
		if n > 0 && seqs[n] <= seqs[n-1] {
			t.Fatalf("seq %d after %d", seqs[n], seqs[n-1])
		}
	}
	slot := slotOf(Trigger("a", 0))
	after := uint64(0)
	for n := range 10 {
		id, item := s.head(slot, after)
		if want := Trigger("a", n).ID; id != want {
			t.Fatalf("head after %d is %q, want %q", after, id, want)
		}
		after = item.Seq
		if n%2 == 0 { // what is passed over need not have been deleted
			s.remove(item.Seq)
		}
	}
	if id, _ := s.head(slot, after); id != "" {
		t.Errorf("head after the last is %q", id)
	}
	if got := s.table(3)[slot]; got != 5 {
		t.Errorf("table counts %d, want 5", got)
	}
}

func apart(t *testing.T, s *suite) {
	a, b, c := Trigger("a", 1), Trigger("b", 1), Trigger("c", 1)
	c.Partition = 4
	seq := s.mustPark(a)
	s.mustPark(b)
	s.mustPark(c)
	want := map[fallback.Slot]int{slotOf(a): 1, slotOf(b): 1}
	if got := s.table(3); !reflect.DeepEqual(got, want) {
		t.Errorf("table of 3: %v, want %v", got, want)
	}
	if got := s.table(4); !reflect.DeepEqual(got, map[fallback.Slot]int{slotOf(c): 1}) {
		t.Errorf("table of 4: %v", got)
	}
	if got := s.table(5); len(got) != 0 {
		t.Errorf("table of 5: %v", got)
	}
	s.remove(seq)
	if id, _ := s.head(slotOf(a), 0); id != "" {
		t.Errorf("head of the emptied slot: %q", id)
	}
	if id, _ := s.head(slotOf(b), 0); id != b.ID {
		t.Errorf("head of b: %q", id)
	}
	if oldest, ok, err := s.Oldest(t.Context()); err != nil || !ok || oldest.Trigger.ID != b.ID {
		t.Errorf("oldest: %q %v %v", oldest.Trigger.ID, ok, err)
	}
}

func repeatedPark(t *testing.T, s *suite) {
	a := Trigger("a", 1)
	s.mustPark(a)
	// As if the answer had been lost: the same trigger is parked again.
	if _, err := s.park(a); !errors.Is(err, fallback.ErrDuplicate) {
		t.Fatalf("the repeat: %v, want %v", err, fallback.ErrDuplicate)
	}
	if got := s.table(3)[slotOf(a)]; got != 1 {
		t.Errorf("table counts %d, want 1", got)
	}
	s.mustPark(Trigger("a", 2))
	if id, _ := s.head(slotOf(a), 0); id != a.ID {
		t.Errorf("head %q, want %q", id, a.ID)
	}
}

func redriven(t *testing.T, s *suite) {
	a := Trigger("a", 1)
	s.remove(s.mustPark(a))
	for n := range 2 { // it may die and be redriven again
		a.Redriven = true
		seq, err := s.park(a)
		if err != nil {
			t.Fatalf("redrive %d: %v", n, err)
		}
		id, item := s.head(slotOf(a), 0)
		if id != a.ID || !item.Trigger.Redriven {
			t.Fatalf("redrive %d: head %q, redriven %v", n, id, item.Trigger.Redriven)
		}
		s.remove(seq)
	}
}

func repeatedDelete(t *testing.T, s *suite) {
	first := s.mustPark(Trigger("a", 1))
	last := s.mustPark(Trigger("a", 2))
	for _, seq := range []uint64{first, first, last, last} {
		s.remove(seq)
	}
	if got := s.table(3); len(got) != 0 {
		t.Errorf("table: %v", got)
	}
	if _, ok, err := s.Oldest(t.Context()); ok || err != nil {
		t.Errorf("oldest of an empty queue: %v %v", ok, err)
	}
}

func restart(t *testing.T, s *suite) {
	var seqs []uint64
	for n := range 4 {
		seqs = append(seqs, s.mustPark(Trigger("a", n)))
	}
	s.remove(seqs[0])
	died := time.UnixMilli(1_700_000_000_000)
	if err := s.Bury(t.Context(), fallback.DeadLetter{Trigger: Trigger("x", 1), Reason: fallback.DeadRejected, Died: died}); err != nil {
		t.Fatal(err)
	}
	s.Queue = s.store.Open(t)
	slot := slotOf(Trigger("a", 0))
	if got := s.table(3)[slot]; got != 3 {
		t.Errorf("table counts %d, want 3", got)
	}
	if id, _ := s.head(slot, 0); id != Trigger("a", 1).ID {
		t.Errorf("head %q", id)
	}
	if _, err := s.park(Trigger("a", 2)); !errors.Is(err, fallback.ErrDuplicate) {
		t.Errorf("a park of what is stored: %v, want %v", err, fallback.ErrDuplicate)
	}
	if seq := s.mustPark(Trigger("a", 9)); seq <= seqs[3] {
		t.Errorf("seq %d after the restart, %d before", seq, seqs[3])
	}
	if in, ok := s.Queue.(fallback.Inspector); ok {
		n := 0
		for _, err := range in.Dead(t.Context(), fallback.Filter{}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
	}
}

func full(t *testing.T, s *suite) {
	var seqs []uint64
	var err error
	n := 0
	for ; n < 100; n++ {
		var seq uint64
		if seq, err = s.park(Trigger("a", n)); err != nil {
			break
		}
		seqs = append(seqs, seq)
	}
	if !errors.Is(err, fallback.ErrFull) {
		t.Fatalf("after %d parks: %v, want %v", n, err, fallback.ErrFull)
	}
	slot := slotOf(Trigger("a", 0))
	if got := s.table(3)[slot]; got != len(seqs) || got == 0 {
		t.Fatalf("table counts %d, want %d", got, len(seqs))
	}
	if u := s.Usage(); u.MaxBytes == 0 {
		t.Errorf("usage has no bound: %+v", u)
	}
	s.remove(seqs[0])
	s.remove(seqs[1])
	s.mustPark(Trigger("a", n)) // the very one that was refused
	if id, _ := s.head(slot, seqs[len(seqs)-1]); id != Trigger("a", n).ID {
		t.Errorf("last is %q", id)
	}
}

// foundAtOnce parks, reads and deletes in several slots at once: a slot's
// head is there as soon as its park has been answered.
func foundAtOnce(t *testing.T, s *suite) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			device := fmt.Sprint("device ", g)
			slot := fallback.Slot{Partition: g % 2, Index: 10 + g}
			after := uint64(0)
			for n := range 50 {
				trigger := Trigger(device, n)
				trigger.Partition, trigger.Slot = slot.Partition, slot.Index
				answer := make(chan error, 1)
				s.Park(trigger, fallback.ReasonOrder, func(_ uint64, err error) { answer <- err })
				if err := <-answer; err != nil {
					t.Errorf("park %s: %v", trigger.ID, err)
					return
				}
				item, ok, err := s.Head(t.Context(), slot, after)
				if err != nil || !ok || item.Trigger.ID != trigger.ID {
					t.Errorf("head after park of %s: %q %v %v", trigger.ID, item.Trigger.ID, ok, err)
					return
				}
				after = item.Seq
				if err := s.Delete(t.Context(), item.Seq); err != nil {
					t.Errorf("delete %s: %v", trigger.ID, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func endedContext(t *testing.T, s *suite) {
	a := Trigger("a", 1)
	seq := s.mustPark(a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok, err := s.Head(ctx, slotOf(a), 0); err == nil && !ok {
		t.Error("Head says that the slot is empty")
	}
	if table, err := s.Table(ctx, 3); err == nil && table[slotOf(a)] != 1 {
		t.Error("Table says that the slot is empty")
	}
	if id, _ := s.head(slotOf(a), 0); id != a.ID {
		t.Errorf("head %q", id)
	}
	s.remove(seq)
}

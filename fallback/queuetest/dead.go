package queuetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/tripline/tripline/fallback"
)

// inspector returns the queue as an Inspector, or skips.
func (s *suite) inspector() fallback.Inspector {
	in, ok := s.Queue.(fallback.Inspector)
	if !ok {
		s.Skip("the queue is no Inspector")
	}
	return in
}

func (s *suite) dead(f fallback.Filter) []fallback.DeadLetter {
	s.Helper()
	var all []fallback.DeadLetter
	for d, err := range s.inspector().Dead(s.Context(), f) {
		if err != nil {
			s.Fatalf("list dead letters: %v", err)
		}
		all = append(all, d)
	}
	return all
}

func deadWhole(t *testing.T, s *suite) {
	in := s.inspector()
	want := fallback.DeadLetter{
		Trigger: Trigger("bus.7", 1), Reason: fallback.DeadMaxAttempts, Attempts: 8,
		Error:  "answered 500: \"no\" & so on",
		Parked: time.UnixMilli(1_700_000_000_123), Died: time.UnixMilli(1_700_000_060_456),
	}
	second := want
	second.Trigger, second.Parked = Trigger("bus.8", 1), time.Time{}
	for _, d := range []fallback.DeadLetter{want, second} {
		if err := s.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	got := s.dead(fallback.Filter{})
	if len(got) != 2 {
		t.Fatalf("%d dead letters, want 2", len(got))
	}
	if !got[0].Parked.Equal(want.Parked) || !got[0].Died.Equal(want.Died) || !got[1].Parked.IsZero() {
		t.Errorf("parked %v and %v, died %v", got[0].Parked, got[1].Parked, got[0].Died)
	}
	seq := got[0].Seq
	got[0].Seq, got[0].Parked, got[0].Died = 0, want.Parked, want.Died
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v\nwant %+v", got[0], want)
	}
	for range 2 {
		if err := in.DeleteDead(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	if left := s.dead(fallback.Filter{}); len(left) != 1 || left[0].Trigger.Device != "bus.8" {
		t.Errorf("left: %+v", left)
	}
}

func repeatedBury(t *testing.T, s *suite) {
	d := fallback.DeadLetter{Trigger: Trigger("a", 1), Reason: fallback.DeadRejected, Died: time.UnixMilli(1_700_000_000_000)}
	for range 2 { // as if the answer had been lost
		if err := s.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.dead(fallback.Filter{})); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
	d.Died = d.Died.Add(time.Hour) // redriven, it has died again
	if err := s.Bury(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := len(s.dead(fallback.Filter{})); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
}

func filtered(t *testing.T, s *suite) {
	in := s.inspector()
	var seqs []uint64
	for n := range 3 {
		seqs = append(seqs, s.mustPark(Trigger("a", n)))
		s.mustPark(Trigger("b", n))
	}
	now := time.Now()
	for n, device := range []string{"a", "b"} {
		d := fallback.DeadLetter{Trigger: Trigger(device, 1), Reason: fallback.DeadExpired, Died: now.Add(-time.Duration(n) * time.Hour)}
		if err := s.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	items := func(f fallback.Filter) (ids []string) {
		for item, err := range in.Items(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, item.Trigger.ID)
		}
		return ids
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(items(fallback.Filter{}), "a-0", "b-0", "a-1", "b-1", "a-2", "b-2")
	check(items(fallback.Filter{Device: "b"}), "b-0", "b-1", "b-2")
	check(items(fallback.Filter{Fence: "depot a"}), "a-0", "a-1", "a-2")
	check(items(fallback.Filter{Device: "a", After: seqs[0]}), "a-1", "a-2")
	check(items(fallback.Filter{OlderThan: time.Hour}))
	for range in.Items(t.Context(), fallback.Filter{}) {
		break // a listing can be left early
	}
	if dead := s.dead(fallback.Filter{OlderThan: time.Minute}); len(dead) != 1 || dead[0].Trigger.Device != "b" {
		t.Errorf("dead for a minute: %+v", dead)
	}
	if dead := s.dead(fallback.Filter{Device: "a"}); len(dead) != 1 || dead[0].Trigger.Device != "a" {
		t.Errorf("dead of a: %+v", dead)
	}
}

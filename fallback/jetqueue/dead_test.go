package jetqueue_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/router"
)

func letter(tr router.Trigger) fallback.DeadLetter {
	return fallback.DeadLetter{
		Trigger:  tr,
		Reason:   fallback.DeadMaxAttempts,
		Attempts: 8,
		Error:    "POST https://example.com: answered 500\nagain",
		Parked:   time.UnixMilli(1_700_000_000_123),
		Died:     time.UnixMilli(1_700_000_900_456),
	}
}

// dead lists a queue's dead letters.
func dead(t *testing.T, q *jetqueue.Queue, f fallback.Filter) (all []fallback.DeadLetter) {
	t.Helper()
	for d, err := range q.Dead(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func TestDeadLetterComesBackWhole(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	want := letter(trigger("a.b", 1))
	if err := q.Bury(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got := dead(t, q, fallback.Filter{})
	if len(got) != 1 {
		t.Fatalf("%d dead letters, want 1", len(got))
	}
	want.Seq = got[0].Seq
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("came back as\n%+v, want\n%+v", got[0], want)
	}
}

// A Bury whose answer was lost is repeated and stored once; a trigger that
// dies again after a redrive is another letter.
func TestRepeatedBuryIsOneLetter(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	d := letter(trigger("a", 1))
	for range 3 {
		if err := q.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(dead(t, q, fallback.Filter{})); n != 1 {
		t.Errorf("%d letters of one death", n)
	}
	d.Trigger.Redriven, d.Died = true, d.Died.Add(time.Minute)
	if err := q.Bury(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := len(dead(t, q, fallback.Filter{})); n != 2 {
		t.Errorf("%d letters of two deaths", n)
	}
}

func TestDeadLettersOfConsumersAreApart(t *testing.T) {
	_, nc := startServer(t)
	a := open(t, nc)
	b := open(t, nc, func(c *jetqueue.Config) { c.Consumer = "batch" })
	for _, q := range []*jetqueue.Queue{a, b} {
		if err := q.Bury(t.Context(), letter(trigger("x", 1))); err != nil {
			t.Fatal(err)
		}
	}
	got := dead(t, a, fallback.Filter{})
	if len(got) != 1 {
		t.Fatalf("%d letters of one consumer", len(got))
	}
	for range 2 { // twice is no error
		if err := a.DeleteDead(t.Context(), got[0].Seq); err != nil {
			t.Fatal(err)
		}
	}
	if len(dead(t, a, fallback.Filter{})) != 0 || len(dead(t, b, fallback.Filter{})) != 1 {
		t.Error("the wrong letter was deleted")
	}
}

func TestFullDeadLettersSaySo(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc, func(c *jetqueue.Config) { c.DeadMaxBytes = 2 << 10 })
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = q.Bury(t.Context(), letter(trigger("a", n)))
	}
	if !errors.Is(err, fallback.ErrFull) || !strings.Contains(err.Error(), "TRIPLINE_DEAD") {
		t.Errorf("full: %v", err)
	}
}

func TestListingsAreFiltered(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	var seqs []uint64
	for n := range 12 {
		tr := trigger(fmt.Sprintf("d%d", n%3), n)
		tr.Fence = fmt.Sprintf("f%d", n%2)
		seqs = append(seqs, mustPark(t, q, tr))
		d := letter(tr)
		d.Died = time.Now().Add(-time.Duration(n) * time.Hour)
		if err := q.Bury(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		filter fallback.Filter
		parked int
		dead   int
	}{
		{"all", fallback.Filter{}, 12, 12},
		{"device", fallback.Filter{Device: "d1"}, 4, 4},
		{"fence", fallback.Filter{Fence: "f1"}, 6, 6},
		{"both", fallback.Filter{Device: "d0", Fence: "f0"}, 2, 2},
		{"after", fallback.Filter{After: seqs[9]}, 2, 2},
		{"old", fallback.Filter{OlderThan: 90 * time.Minute}, 0, 10},
		{"nobody", fallback.Filter{Device: "d9"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			parked, last := 0, uint64(0)
			for it, err := range q.Items(t.Context(), c.filter) {
				if err != nil {
					t.Fatal(err)
				}
				if it.Seq <= last {
					t.Errorf("seq %d after %d", it.Seq, last)
				}
				parked, last = parked+1, it.Seq
			}
			if parked != c.parked {
				t.Errorf("%d items, want %d", parked, c.parked)
			}
			if n := len(dead(t, q, c.filter)); n != c.dead {
				t.Errorf("%d dead letters, want %d", n, c.dead)
			}
		})
	}
}

// An error of any length leaves the letter storable.
func TestLongErrorIsCut(t *testing.T) {
	_, nc := startServer(t)
	q := open(t, nc)
	d := letter(trigger("a", 1))
	d.Error = strings.Repeat("é", 100_000)
	if err := q.Bury(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := dead(t, q, fallback.Filter{})[0].Error; got != strings.Repeat("é", 2048) {
		t.Errorf("the error came back with %d bytes", len(got))
	}
}

package jetqueue_test

import (
	"testing"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
)

// What a consumer has left can be listed and deleted after its queue was
// closed, and nobody else's is touched.
func TestInspectionSeesWhatAClosedQueueHasLeft(t *testing.T) {
	_, nc := startServer(t)
	left := open(t, nc)
	other := open(t, nc, func(c *jetqueue.Config) { c.Consumer = "other" })
	for i := range 3 {
		for _, q := range []*jetqueue.Queue{left, other} {
			mustPark(t, q, trigger("a.b", i))
			mustPark(t, q, trigger("c", i))
			if err := q.Bury(t.Context(), letter(trigger("a.b", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	look := jetqueue.Inspect(nc, jetqueue.DefaultNamespace, "dispatch")
	count := func(f fallback.Filter) (items, letters int) {
		t.Helper()
		for _, err := range look.Items(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			items++
		}
		for _, err := range look.Dead(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			letters++
		}
		return items, letters
	}
	if items, letters := count(fallback.Filter{}); items != 6 || letters != 3 {
		t.Errorf("%d items and %d dead letters, want 6 and 3", items, letters)
	}
	of := fallback.Filter{Device: "a.b"}
	for i, err := range look.Items(t.Context(), of) {
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // twice is no error
			if err := look.Delete(t.Context(), i.Seq); err != nil {
				t.Error(err)
			}
		}
	}
	for d, err := range look.Dead(t.Context(), of) {
		if err != nil {
			t.Fatal(err)
		}
		if err := look.DeleteDead(t.Context(), d.Seq); err != nil {
			t.Error(err)
		}
	}
	if items, letters := count(fallback.Filter{}); items != 3 || letters != 0 {
		t.Errorf("%d items and %d dead letters are left, want 3 and 0", items, letters)
	}
	if got := len(dead(t, other, fallback.Filter{})); got != 3 {
		t.Errorf("%d dead letters of the other consumer are left, want 3", got)
	}
}

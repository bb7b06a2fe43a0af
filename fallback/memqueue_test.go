package fallback_test

import (
	"testing"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/queuetest"
)

// memStore is a queue in memory, which a restart of the process would lose:
// it is opened again as it is.
type memStore struct{ q *fallback.MemQueue }

func (s memStore) Open(*testing.T) fallback.Queue { return s.q }

func TestMemQueue(t *testing.T) {
	queuetest.Run(t, func(_ *testing.T, small bool) queuetest.Store {
		if small {
			return memStore{fallback.NewMemQueue(queuetest.Room, 0)}
		}
		return memStore{fallback.NewMemQueue(0, 0)}
	})
}

func TestMemQueueIsClosedForGood(t *testing.T) {
	q := fallback.NewMemQueue(0, 0)
	q.Close()
	answered := false
	q.Park(queuetest.Trigger("a", 1), fallback.ReasonOpen, func(_ uint64, err error) { answered = err == fallback.ErrClosed })
	if !answered {
		t.Error("a closed queue parks")
	}
	if _, err := q.Table(t.Context(), 0); err != fallback.ErrClosed {
		t.Errorf("table: %v, want %v", err, fallback.ErrClosed)
	}
}

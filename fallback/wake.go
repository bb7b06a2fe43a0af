package fallback

import (
	"container/heap"
	"time"

	"github.com/tripline/tripline/breaker"
)

// What a slot may be woken for.
const (
	wakeTurn = iota // its first item may be called again
	wakePark        // its park may be repeated
)

// wakes says when to look at which slot again. A slot has at most one wake of
// each kind that counts: the newest.
type wakes []wake

type wake struct {
	at     time.Duration
	s      *slot
	kind   int
	ticket uint64
}

// set asks for a wake, instead of an earlier one of that kind.
func (w *wakes) set(s *slot, kind int, at time.Duration) {
	s.ticket[kind]++
	heap.Push(w, wake{at, s, kind, s.ticket[kind]})
}

// due takes out one wake whose time has come.
func (w *wakes) due(now time.Duration) (wake, bool) {
	for len(*w) > 0 && (*w)[0].at <= now {
		k := heap.Pop(w).(wake)
		if k.ticket == k.s.ticket[k.kind] {
			return k, true
		}
	}
	return wake{}, false
}

// next returns when the first wake is due.
func (w *wakes) next() time.Duration {
	for len(*w) > 0 {
		k := (*w)[0]
		if k.ticket == k.s.ticket[k.kind] {
			return k.at
		}
		heap.Pop(w)
	}
	return breaker.Never
}

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].at < w[j].at }
func (w wakes) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)        { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	old := *w
	k := old[len(old)-1]
	old[len(old)-1] = wake{}
	*w = old[:len(old)-1]
	return k
}

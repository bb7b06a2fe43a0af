package fallback

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// answer answers a random park.
func (w *world) answer() {
	if len(w.parks) == 0 {
		return
	}
	i := w.r.IntN(len(w.parks))
	p := w.parks[i]
	w.parks = slices.Delete(w.parks, i, i+1)
	var err error
	switch {
	case w.percent(w.mood.full):
		err = ErrFull
	case w.percent(w.mood.lost):
		err = errUnknown
		if w.percent(50) {
			w.store.park(p.e.trigger, w.now) // applied, but the answer is lost
		}
	default:
		err = w.store.park(p.e.trigger, w.now)
	}
	w.logf("park of %s: %v", p.e.trigger.ID, err)
	w.core.observe(w.now, w.brk.State())
	w.core.parked(w.now, p, err)
	w.act()
}

func (s *store) park(t router.Trigger, now time.Duration) error {
	if _, ok := s.ids[t.ID]; ok && !t.Redriven {
		return ErrDuplicate
	}
	s.seq++
	s.ids[t.ID] = s.seq
	s.items = append(s.items, Item{Trigger: t, Seq: s.seq, Parked: time.Unix(0, int64(now))})
	return nil
}

func (s *store) head(id Slot, after uint64) *Item {
	for i := range s.items {
		t := &s.items[i].Trigger
		if s.items[i].Seq > after && t.Partition == id.Partition && t.Slot == id.Index {
			item := s.items[i]
			return &item
		}
	}
	return nil
}

func (s *store) delete(seq uint64) {
	s.items = slices.DeleteFunc(s.items, func(i Item) bool { return i.Seq == seq })
}

// take gives a worker its next task, if there is one and a worker is free.
func (w *world) take() {
	if len(w.tasks) >= w.cfg.Concurrency {
		return
	}
	t := w.core.next(w.now)
	w.act()
	w.begin(t)
}

// begin begins a task.
func (w *world) begin(t task) {
	if t.kind == idle {
		return
	}
	for _, other := range w.tasks {
		if t.s != nil && other.task.s == t.s {
			w.failf("two tasks of %v", t.s.id)
		}
	}
	w.tasks = append(w.tasks, &running{task: t})
	w.logf("task %v %s", t.kind, w.name(t))
}

func (w *world) name(t task) string {
	switch {
	case t.e != nil:
		return t.e.trigger.ID
	case t.item != nil:
		return t.item.Trigger.ID + " from the queue"
	case t.s != nil:
		return fmt.Sprint(t.s.id)
	}
	return ""
}

// work lets a random task make its next step.
func (w *world) work() {
	if len(w.tasks) == 0 {
		return
	}
	i := w.r.IntN(len(w.tasks))
	r := w.tasks[i]
	follow, done := w.advance(r)
	w.act()
	if done {
		w.tasks = slices.Delete(w.tasks, i, i+1)
		w.begin(follow)
	}
}

// advance makes one step of a task: first it is applied, then it is answered,
// with anything in between.
func (w *world) advance(r *running) (follow task, done bool) {
	w.core.observe(w.now, w.brk.State())
	t := r.task
	switch t.kind {
	case load:
		if !r.applied {
			r.applied, r.item = true, w.store.head(t.s.id, t.after)
			return task{}, false
		}
		if w.percent(w.mood.lost) {
			return w.core.fetched(w.now, t, nil, 0, errUnknown), true
		}
		if r.item != nil {
			r.age = w.now - time.Duration(r.item.Parked.UnixNano())
		}
		return w.core.fetched(w.now, t, r.item, r.age, nil), true
	case call:
		return w.call(r)
	case bury:
		return w.buryTask(r)
	case erase:
		if w.percent(w.mood.lost) {
			if w.percent(50) {
				w.store.delete(t.item.Seq)
			}
			return w.core.erased(w.now, t, errUnknown), true
		}
		w.store.delete(t.item.Seq)
		return w.core.erased(w.now, t, nil), true
	}
	return w.evict(), true
}

func (w *world) buryTask(r *running) (task, bool) {
	t := r.task
	id := t.trigger().ID
	if w.percent(w.mood.lost) {
		if w.percent(50) {
			w.bury(id, t.reason)
		}
		return w.core.buried(w.now, t, false, errUnknown), true
	}
	if w.percent(w.mood.full) {
		return w.core.buried(w.now, t, true, ErrFull), true
	}
	w.bury(id, t.reason)
	return w.core.buried(w.now, t, false, nil), true
}

func (w *world) bury(id string, reason DeadReason) {
	w.dead[id] = reason
	w.died[id] = true
	w.logf("%s is dead: %s", id, reason)
}

func (w *world) evict() task {
	made := false
	if len(w.store.items) > 0 {
		item := w.store.items[0]
		t := w.core.claim(&item)
		if t.kind == bury {
			w.bury(item.Trigger.ID, t.reason)
			t = w.core.passed(t)
		}
		if t.kind == erase {
			w.store.delete(item.Seq)
			w.core.erased(w.now, t, nil)
			made = true
		}
	}
	w.core.evicted(made)
	return task{}
}

// call makes a step of a call: ask the breaker, reach the consumer, end.
func (w *world) call(r *running) (task, bool) {
	t := r.task
	if !r.admit {
		p, err := w.brk.Admit(w.now)
		if err != nil {
			why := ReasonOpen
			if errors.Is(err, breaker.ErrProbeCap) {
				why = ReasonProbeCap
			}
			w.core.observe(w.now, w.brk.State())
			w.logf("%s is refused: %s", w.name(t), why)
			return w.core.refused(w.now, t, why), true
		}
		w.core.answered(&r.task)
		r.permit, r.admit = p, true
		return task{}, false
	}
	if !w.sunny && w.percent(w.mood.slow) {
		return task{}, false
	}
	res := w.consumer(t.trigger())
	res.probe = r.permit.Probe()
	if res.cause == router.Throttled {
		w.throttled++
	} else {
		w.throttled = 0
	}
	res.verdict = r.permit.Report(w.now, breaker.Outcome{Kind: kind(res, w.throttled), RetryAfter: res.retryAfter})
	w.core.observe(w.now, w.brk.State())
	w.logf("%s: ok=%v cause=%v probe=%v verdict=%v", w.name(t), res.ok, res.cause, res.probe, res.verdict)
	return w.core.called(w.now, t, res), true
}

// consumer receives a trigger, or not; a failed one may have been received.
func (w *world) consumer(t *router.Trigger) result {
	switch {
	case w.percent(w.mood.reject):
		return result{cause: router.Rejected, text: "rejected"}
	case w.percent(w.mood.unsent):
		return result{cause: router.Unsent, text: "unsent"}
	case w.percent(w.mood.gone):
		return result{cause: router.Gone, text: "gone"}
	case w.percent(w.mood.throttle):
		return result{cause: router.Throttled, text: "throttled", retryAfter: time.Duration(w.r.IntN(3)) * time.Second}
	case w.percent(w.mood.fail):
		if w.percent(30) {
			w.receive(t)
		}
		return result{cause: router.Failed, text: "failed"}
	}
	w.receive(t)
	return result{ok: true}
}

// receive is the consumer's view of order.
func (w *world) receive(t *router.Trigger) {
	var n int
	if _, err := fmt.Sscanf(t.Sequence, "%d", &n); err != nil {
		w.failf("sequence %q: %v", t.Sequence, err)
	}
	w.logf("the consumer has %s", t.ID)
	// What was given up on may come again if its deletion failed before a
	// restart; like any repeat, it shows by its id.
	if n < w.got[t.Device] && !w.seen[t.ID] && !t.Redriven && !w.died[t.ID] {
		w.failf("%s comes after %s/%d", t.ID, t.Device, w.got[t.Device])
	}
	w.seen[t.ID] = true
	w.got[t.Device] = max(n, w.got[t.Device])
}

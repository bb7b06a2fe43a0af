package fallback

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// errGoexit is the error of a sink that ended its goroutine.
var errGoexit = errors.New("the sink ended its goroutine")

// worker carries out tasks, one at a time.
type worker struct {
	o    *Outlet
	life *life

	task    task
	calling bool // the sink is being called
	permit  breaker.Permit
	begun   time.Duration
}

// life is what the goroutines of a run share.
type life struct {
	wg    sync.WaitGroup
	ctx   context.Context // of what is asked of the queue: ends last
	calls context.Context // of the sink's calls
}

// startWorker starts a worker with a task to begin with.
func (o *Outlet) startWorker(first task) {
	l := o.life
	l.wg.Go(func() {
		w := worker{o: o, life: l, task: first}
		defer func() {
			if w.calling { // runtime.Goexit in the sink: another goes on
				o.startWorker(w.ended(errGoexit))
			}
		}()
		w.run()
	})
}

// run works until the outlet is closed.
func (w *worker) run() {
	for {
		for w.task.kind != idle {
			w.task = w.perform(w.task)
		}
		if !w.take() {
			return
		}
	}
}

// take waits for a task. It returns false when there will be none any more.
func (w *worker) take() bool {
	o := w.o
	o.mu.Lock()
	for {
		if o.closed {
			o.mu.Unlock()
			return false
		}
		w.task = o.core.next(o.Now())
		if w.task.kind != idle {
			if at := o.Now() + o.limits.P99; w.task.kind == call && at < o.armed {
				o.arm(at) // the clock sees the call pass the limit in flight
			}
			o.unlockAndAct()
			return true
		}
		if o.core.out.pending() {
			o.unlockAndAct()
			o.mu.Lock()
			continue
		}
		o.spread()
		o.idle++
		o.work.Wait()
		o.idle--
	}
}

// perform carries out one task and returns the one that follows from it.
func (w *worker) perform(t task) task {
	switch t.kind {
	case load:
		return w.load(t)
	case call:
		return w.deliver(t)
	case bury:
		return w.bury(t)
	case erase:
		return w.erase(t)
	case evict:
		w.o.evict(w.life.ctx)
	}
	return task{}
}

// step tells the core something, and does what follows from it.
func (o *Outlet) step(f func(c *core, now time.Duration) task) task {
	o.mu.Lock()
	now := o.Now()
	o.look(now)
	t := f(o.core, now)
	o.unlockAndAct()
	return t
}

func (w *worker) load(t task) task {
	o := w.o
	ctx, cancel := context.WithTimeout(w.life.ctx, o.cfg.QueueTimeout)
	defer cancel()
	item, ok, err := o.queue.Head(ctx, t.s.id, t.after)
	o.queueError("reading the head of a slot", err)
	var head *Item
	var age time.Duration
	if err == nil && ok {
		head, age = &item, time.Since(item.Parked)
	}
	return o.step(func(c *core, now time.Duration) task { return c.fetched(now, t, head, age, err) })
}

func (w *worker) erase(t task) task {
	o := w.o
	ctx, cancel := context.WithTimeout(w.life.ctx, o.cfg.QueueTimeout)
	defer cancel()
	err := o.queue.Delete(ctx, t.item.Seq)
	o.queueError("deleting a settled item", err)
	return o.step(func(c *core, now time.Duration) task { return c.erased(now, t, err) })
}

func (w *worker) bury(t task) task {
	o := w.o
	if t.died.IsZero() {
		t.died = time.Now()
	}
	err := o.buryOne(w.life.ctx, t, t.s.lastError, t.s.tried)
	return o.step(func(c *core, now time.Duration) task {
		return c.buried(now, t, errors.Is(err, ErrFull), err)
	})
}

// buryOne stores the dead letter of a task.
func (o *Outlet) buryOne(ctx context.Context, t task, text string, tried int) error {
	d := DeadLetter{Reason: t.reason, Attempts: tried, Error: text, Died: t.died}
	if t.e != nil {
		d.Trigger = t.e.trigger
	} else {
		d.Trigger, d.Parked = t.item.Trigger, t.item.Parked
	}
	ctx, cancel := context.WithTimeout(ctx, o.cfg.QueueTimeout)
	defer cancel()
	err := o.queue.Bury(ctx, d)
	if err == nil && o.cfg.Hooks.Died != nil {
		o.cfg.Hooks.Died(t.reason)
	}
	if !errors.Is(err, ErrFull) {
		o.queueError("storing a dead letter", err)
	}
	return err
}

func (o *Outlet) queueError(doing string, err error) {
	if err != nil && o.cfg.Hooks.QueueError != nil {
		o.cfg.Hooks.QueueError(doing, err)
	}
}

// deliver asks the breaker and calls the sink.
func (w *worker) deliver(t task) task {
	o := w.o
	if !o.holds(t.trigger().Partition) {
		return o.lapse(t)
	}
	w.begun = o.Now()
	permit, err := o.breaker.Admit(w.begun)
	if err != nil {
		why := ReasonOpen
		if errors.Is(err, breaker.ErrProbeCap) {
			why = ReasonProbeCap
		}
		return o.step(func(c *core, now time.Duration) task { return c.refused(now, t, why) })
	}
	if t.asks { // the next probe may be asked for
		o.step(func(c *core, _ time.Duration) task { c.answered(&w.task); return task{} })
	}
	w.permit = permit
	w.calling = true
	err = w.callSink(t.trigger())
	return w.ended(err)
}

// callSink makes one call. A panic in the sink is an error of that call.
func (w *worker) callSink(t *router.Trigger) (err error) {
	ctx, cancel := context.WithTimeout(w.life.calls, w.o.limits.Timeout)
	defer cancel()
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // not a runtime.Goexit
			err = fmt.Errorf("the sink panicked: %v", v)
			if hook := w.o.cfg.Hooks.Panicked; hook != nil {
				hook(v, debug.Stack())
			}
		}
	}()
	err = w.o.sink.Deliver(ctx, *t)
	returned = true
	return err
}

// ended takes the outcome of the call.
func (w *worker) ended(err error) task {
	o, t := w.o, w.task
	w.calling = false
	r := w.result(err)
	row := o.throttledRow(r.cause == router.Throttled)
	now := o.Now()
	r.verdict = w.permit.Report(now, breaker.Outcome{Kind: kind(r, row), RetryAfter: r.retryAfter})
	w.tell(t, r, now-w.begun)
	o.mu.Lock()
	now = o.Now()
	o.look(now)
	o.stats.note(now, t, r)
	follow := o.core.called(now, t, r)
	o.unlockAndAct()
	return follow
}

// throttledRow counts a call into the row of those that were answered with a
// wish for fewer, or ends the row, and returns its length.
func (o *Outlet) throttledRow(throttled bool) int {
	if !throttled {
		if o.throttled.Load() > 0 {
			o.throttled.Store(0)
		}
		return 0
	}
	return int(o.throttled.Add(1))
}

// result reads the error of a call.
func (w *worker) result(err error) result {
	r := result{probe: w.permit.Probe(), ok: err == nil, outcome: OutcomeOK}
	if err == nil {
		return r
	}
	r.text = err.Error()
	r.outcome = OutcomeFailed
	if d, ok := errors.AsType[*router.DeliveryError](err); ok {
		r.cause, r.retryAfter = d.Cause, d.RetryAfter
		r.outcome = outcomeOf(d.Cause)
	}
	switch {
	case r.outcome != OutcomeFailed:
	case w.life.calls.Err() != nil:
		r.cancelled, r.outcome = true, OutcomeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		r.outcome = OutcomeTimeout
	}
	return r
}

func outcomeOf(c router.Cause) Outcome {
	switch c {
	case router.Rejected:
		return OutcomeRejected
	case router.Throttled:
		return OutcomeThrottled
	case router.Unavailable:
		return OutcomeUnavailable
	case router.Gone:
		return OutcomeGone
	case router.Unsent:
		return OutcomeUnsent
	}
	return OutcomeFailed
}

// tell calls the hooks for a call.
func (w *worker) tell(t task, r result, latency time.Duration) {
	hooks := &w.o.cfg.Hooks
	if r.probe && hooks.Probed != nil {
		hooks.Probed(r.verdict)
	}
	trigger := t.trigger()
	if hooks.Delivered != nil {
		d := Delivery{
			Trigger: trigger, Outcome: r.outcome, Latency: latency, Replayed: t.e == nil,
			Probe: r.probe, Verdict: r.verdict, Error: r.text,
		}
		if t.e != nil && !trigger.Read.IsZero() {
			d.Since = time.Since(trigger.Read)
		}
		hooks.Delivered(d)
	}
	if r.ok && t.e == nil && hooks.Replayed != nil {
		hooks.Replayed(time.Since(t.item.Parked))
	}
	if r.cause == router.Gone && !r.ok && hooks.Disabled != nil {
		hooks.Disabled()
	}
}

package fallback

import (
	"context"
	"fmt"
	"time"

	"github.com/tripline/tripline/router"
)

// Own makes the outlet the one that serves a partition: it reads what the
// queue has of it, and only then may its triggers go live. Called again, it
// reads the queue again (an operator may have purged it). The caller sees to
// it that nobody else serves the partition.
func (o *Outlet) Own(ctx context.Context, partition int) error {
	table, err := o.queue.Table(ctx, partition)
	if err != nil {
		return fmt.Errorf("reading the slots of partition %d: %w", partition, err)
	}
	o.step(func(c *core, now time.Duration) task { c.owned(now, partition, table); return task{} })
	return nil
}

// Disown gives a partition up: its calls in flight end, what waits in memory
// is parked. Its triggers must not be offered any more. When ctx ends first,
// what is left is forgotten, unsettled, and the error says how much that was.
func (o *Outlet) Disown(ctx context.Context, partition int) error {
	o.mu.Lock()
	p := o.core.partition(partition)
	p.closing = true
	o.core.evacuate(o.Now(), p)
	quiet := o.await(func(*core) bool { return p.quiet() && o.allTold() })
	o.unlockAndAct()
	var err error
	select {
	case <-quiet:
	case <-ctx.Done():
		err = fmt.Errorf("giving up partition %d: %w", partition, ctx.Err())
	}
	o.step(func(c *core, _ time.Duration) task { c.drop(partition); return task{} })
	return err
}

// Redrive sends a dead letter again: it is parked behind all that its slot
// has, marked, and keeps its id. The order among those that are redriven is
// that of the calls. It returns when the trigger is durable in the queue (or
// delivered) and, if the queue is an [Inspector], the dead letter is deleted.
// On an error both may exist; redriving again is safe, and at worst delivers
// the trigger twice. ErrNotHeld: see [Config.Holds].
func (o *Outlet) Redrive(ctx context.Context, d DeadLetter) error {
	if !o.holds(d.Trigger.Partition) {
		return ErrNotHeld
	}
	t := d.Trigger
	t.Redriven, t.Read = true, time.Time{}
	done := make(chan struct{})
	e := &entry{trigger: t, settled: func() { close(done) }, size: overhead + len(t.Body) + len(t.ID) + len(t.Device)}
	o.mu.Lock()
	if o.closed || o.core.stopping {
		o.mu.Unlock()
		return ErrClosed
	}
	o.core.redrive(o.Now(), e)
	o.unlockAndAct()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("redriving a dead letter: %w", ctx.Err())
	}
	if q, ok := o.queue.(Inspector); ok {
		if err := q.DeleteDead(ctx, d.Seq); err != nil {
			return fmt.Errorf("deleting a redriven dead letter: %w", err)
		}
	}
	return nil
}

// Retire prepares the outlet for a successor over the same queue: it takes
// nothing more, and parks what waits in memory at once. Calls in flight go on.
// When [Outlet.Run] has returned, after its context has ended, the successor
// may begin.
func (o *Outlet) Retire() {
	o.mu.Lock()
	o.core.stop()
	o.core.evacuateAll(o.Now())
	o.unlockAndAct()
}

// Pause stops the replay, on an operator's behalf: what is parked stays so.
// Live triggers of slots that have nothing parked are still delivered.
func (o *Outlet) Pause() { o.setPaused(true) }

// Resume ends a Pause.
func (o *Outlet) Resume() { o.setPaused(false) }

func (o *Outlet) setPaused(paused bool) {
	o.step(func(c *core, _ time.Duration) task { c.paused = paused; return task{} })
}

// Enable makes the outlet call a consumer again that has answered 410.
func (o *Outlet) Enable() {
	o.step(func(c *core, _ time.Duration) task { c.disabled = false; return task{} })
}

// ForceOpen opens the breaker for a while, 0 for its longest window.
func (o *Outlet) ForceOpen(window time.Duration) {
	o.breaker.ForceOpen(o.Now(), window)
	o.lookAgain()
}

// ProbeNow ends the breaker's open window, never before its base has passed.
func (o *Outlet) ProbeNow() {
	o.breaker.ProbeNow(o.Now())
	o.lookAgain()
}

// Hint tells the breaker, on somebody else's evidence, that the consumer seems
// well: see [breaker.Breaker.Hint].
func (o *Outlet) Hint() {
	o.breaker.Hint(o.Now())
	o.lookAgain()
}

// lookAgain follows what was done to the breaker from outside: its state, and
// when it is to be polled.
func (o *Outlet) lookAgain() {
	o.step(func(c *core, _ time.Duration) task { c.nudge = true; return task{} })
}

var _ router.Outlet = (*Outlet)(nil)

package fallback

import (
	"context"
	"errors"
	"time"
)

// ErrNotHeld says that the partition is not ours, by [Config.Holds].
var ErrNotHeld = errors.New("the partition is not ours")

// Drain waits until what a partition has in memory for its calls is delivered
// or parked. It stops nothing: the caller sees to it that no more is offered,
// and calls [Outlet.Disown] afterwards.
func (o *Outlet) Drain(ctx context.Context, partition int) error {
	o.mu.Lock()
	p := o.core.partition(partition)
	drained := o.await(func(*core) bool { return p.drained() })
	o.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abandon gives a partition up at once: what is in memory is forgotten,
// unsettled. Calls in flight go on, and nothing comes of their outcome but
// what the breaker makes of it. It is for a partition that somebody else may
// have by now.
func (o *Outlet) Abandon(partition int) {
	o.step(func(c *core, _ time.Duration) task { c.drop(partition); return task{} })
}

// holds says whether a partition is still ours, for what can't be taken back.
func (o *Outlet) holds(partition int) bool {
	return o.cfg.Holds == nil || o.cfg.Holds(partition)
}

// lapse takes back a call whose partition is not ours any more, and gives the
// partition up.
func (o *Outlet) lapse(t task) task {
	return o.step(func(c *core, now time.Duration) task { c.lapsed(now, t); return task{} })
}

func (c *core) lapsed(now time.Duration, t task) {
	c.answered(&t)
	c.inFlight--
	c.ramp.Drop(t.pace)
	c.rate.giveBack()
	if !t.s.orphan {
		c.drop(t.s.id.Partition)
	}
	c.end(now, t.s, false)
}

// drained says that no live trigger of the partition waits for its call, and
// none is at a worker.
func (p *partition) drained() bool {
	for _, s := range p.slots {
		if s != nil && s.state != parking && (s.busy || s.run.n > 0) {
			return false
		}
	}
	return true
}

package fallback

import (
	"context"
	"errors"
	"time"
)

// evict makes room in the queue: its oldest item becomes a dead letter.
func (o *Outlet) evict(ctx context.Context) {
	made := false
	defer func() {
		o.step(func(c *core, _ time.Duration) task { c.evicted(made); return task{} })
	}()
	ask, cancel := context.WithTimeout(ctx, o.cfg.QueueTimeout)
	defer cancel()
	item, ok, err := o.queue.Oldest(ask)
	o.queueError("reading the oldest item", err)
	if err != nil || !ok {
		return
	}
	t := o.step(func(c *core, _ time.Duration) task { return c.claim(&item) })
	if t.kind == idle {
		return
	}
	if t.kind == bury {
		t.died = time.Now()
		if err := o.buryOne(ctx, t, "", 0); err != nil {
			o.step(func(c *core, now time.Duration) task { return c.unclaim(now, t, errors.Is(err, ErrFull)) })
			return
		}
		t = o.step(func(c *core, _ time.Duration) task { return c.passed(t) })
	}
	err = o.queue.Delete(ask, item.Seq)
	o.queueError("deleting an evicted item", err)
	made = err == nil
	o.step(func(c *core, now time.Duration) task { return c.erased(now, t, err) })
}

// claim gives the queue's oldest item to a worker who evicts it, if nobody is
// at its slot and the slot is ours.
func (c *core) claim(item *Item) task {
	id := Slot{item.Trigger.Partition, item.Trigger.Slot}
	p := c.partition(id.Partition)
	s := p.slots[id.Index]
	if s == nil || !p.owned || s.busy || s.state != parking {
		return task{}
	}
	c.begin(s)
	t := task{kind: bury, s: s, item: item, reason: DeadOverflow}
	if item.Seq <= s.after { // settled before: only its deletion failed
		t.kind = erase
	}
	return t
}

// unclaim gives an item back that could not be evicted.
func (c *core) unclaim(now time.Duration, t task, full bool) task {
	c.deadFull = full
	c.end(now, t.s, true)
	return task{}
}

// evicted ends an eviction; made says that there is room again. The parks
// that wait for room are repeated at once.
func (c *core) evicted(made bool) {
	c.evicting--
	if c.evict > 0 {
		c.evict--
	}
	if !made {
		c.evict = 0
		return
	}
	c.eachSlot(func(_ *partition, s *slot) { c.repark(s) })
	c.hand()
}

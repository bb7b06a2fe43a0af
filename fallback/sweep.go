package fallback

import (
	"context"
	"time"
)

// The sweep's rhythm.
const (
	sweepEvery  = time.Second
	oldestEvery = 5  // sweeps, while something is parked
	foundEvery  = 30 // sweeps, while nothing is
)

// sweep tidies up in the background: it deletes settled items whose deletion
// failed, and looks at the oldest item, for display and because one in a slot
// that is believed to be empty must not stay there for ever.
func (o *Outlet) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		o.eraseLeftovers(ctx)
		o.mu.Lock()
		parked := o.core.stored > 0
		if !parked {
			o.stats.oldest = time.Time{}
		}
		unknown := parked && o.stats.oldest.IsZero()
		o.mu.Unlock()
		if unknown || parked && n%oldestEvery == 0 || n%foundEvery == foundEvery-1 {
			o.lookAtOldest(ctx)
		}
	}
}

// eraseLeftovers tries again to delete what could not be deleted.
func (o *Outlet) eraseLeftovers(ctx context.Context) {
	for {
		o.mu.Lock()
		if len(o.core.leftover) == 0 {
			o.mu.Unlock()
			return
		}
		l := o.core.leftover[0]
		o.mu.Unlock()
		ask, cancel := context.WithTimeout(ctx, o.cfg.QueueTimeout)
		err := o.queue.Delete(ask, l.seq)
		cancel()
		if err != nil {
			o.queueError("deleting a settled item", err)
			return
		}
		o.step(func(c *core, now time.Duration) task { c.swept(now, l); return task{} })
	}
}

func (o *Outlet) lookAtOldest(ctx context.Context) {
	ask, cancel := context.WithTimeout(ctx, o.cfg.QueueTimeout)
	defer cancel()
	item, ok, err := o.queue.Oldest(ask)
	if err != nil {
		o.queueError("reading the oldest item", err)
		return
	}
	if !ok {
		return
	}
	o.step(func(c *core, now time.Duration) task {
		o.stats.oldest = item.Parked
		c.found(now, &item)
		return task{}
	})
}

// swept notes that a settled item is deleted at last.
func (c *core) swept(now time.Duration, l leftover) {
	for i := range c.leftover {
		if c.leftover[i] == l {
			c.leftover = append(c.leftover[:i], c.leftover[i+1:]...)
			l.s.left--
			c.file(now, l.s, true)
			return
		}
	}
}

// found takes note of an item that the queue has. If its slot is believed to
// have none, it is counted, so that it is delivered.
func (c *core) found(now time.Duration, item *Item) {
	id := Slot{item.Trigger.Partition, item.Trigger.Slot}
	if id.Partition >= len(c.partitions) || c.partitions[id.Partition] == nil || !c.partitions[id.Partition].owned {
		return
	}
	s := c.slot(id)
	if s.backlog() == 0 && !s.busy && item.Seq > s.after {
		c.addStored(s, 1)
		c.divert(now, s, ReasonOrder)
		return
	}
	c.file(now, s, true)
}

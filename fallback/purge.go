package fallback

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/router"
)

// errNoInspector says that a queue can't list what it has.
var errNoInspector = errors.New("the queue can't list its content")

// purgesAtOnce is how many items are deleted at once.
const purgesAtOnce = 8

// Purge removes, for good, the parked triggers that a filter accepts: nobody
// will get them. What comes to be parked after it began is left. It returns
// how many it removed, also with an error. The order of those that stay is
// kept. The queue must be an [Inspector].
func (o *Outlet) Purge(ctx context.Context, f Filter) (int, error) {
	q, ok := o.queue.(Inspector)
	if !ok {
		return 0, errNoInspector
	}
	if err := o.awaitParks(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	var n atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(purgesAtOnce)
	for item, err := range q.Items(groupCtx, f) {
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		if item.Parked.After(began) {
			break // whoever goes on parking would keep us busy for ever
		}
		group.Go(func() error {
			purged, err := o.purge(groupCtx, &item)
			if purged {
				n.Add(1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return int(n.Load()), fmt.Errorf("purging, after %d: %w", n.Load(), err)
	}
	return int(n.Load()), nil
}

// awaitParks gives what is on its way to the queue the time to get there, so
// that it is among what is purged.
func (o *Outlet) awaitParks(ctx context.Context) error {
	limit := time.NewTimer(o.cfg.QueueTimeout)
	defer limit.Stop()
	o.mu.Lock()
	parked := o.await(func(c *core) bool { return c.outCount == 0 })
	o.mu.Unlock()
	select {
	case <-parked:
	case <-limit.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// PurgeItem removes one parked trigger for good; false if it has been
// delivered meanwhile.
func (o *Outlet) PurgeItem(ctx context.Context, item Item) (bool, error) {
	return o.purge(ctx, &item)
}

// purge takes an item's slot away from the workers, deletes the item, and
// gives the slot back.
func (o *Outlet) purge(ctx context.Context, item *Item) (bool, error) {
	id := Slot{item.Trigger.Partition, item.Trigger.Slot}
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return false, ErrClosed
		}
		free := o.await(func(c *core) bool { return !c.busyAt(id) })
		select {
		case <-free:
			s, parked := o.core.seize(id, item.Seq)
			o.unlockAndAct()
			if !parked {
				return false, nil
			}
			return o.erasePurged(ctx, s, item)
		default:
		}
		o.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// erasePurged deletes an item whose slot, if it is in the table, is seized.
func (o *Outlet) erasePurged(ctx context.Context, s *slot, item *Item) (bool, error) {
	ask, cancel := context.WithTimeout(ctx, o.cfg.QueueTimeout)
	defer cancel()
	err := o.queue.Delete(ask, item.Seq)
	if s != nil {
		o.step(func(c *core, now time.Duration) task { c.purged(now, s, item.Seq, err == nil); return task{} })
	}
	return err == nil, err
}

// Forgotten counts what [Outlet.Forget] has removed.
type Forgotten struct {
	Waiting int // triggers in memory
	Parked  int
	Dead    int // dead letters
}

// Forget removes for good what the outlet has of a device: triggers that wait,
// parked ones and dead letters. A call that is under way is waited for. The
// caller sees to it that no more triggers of the device are offered.
func (o *Outlet) Forget(ctx context.Context, device string) (Forgotten, error) {
	var f Forgotten
	q, ok := o.queue.(Inspector)
	if !ok {
		return f, errNoInspector
	}
	// What a call or a park has out comes back, or becomes durable, and is
	// then removed with the rest.
	for quiet := false; !quiet; {
		o.mu.Lock()
		f.Waiting += o.core.removeWaiting(o.Now(), device)
		done := o.await(func(c *core) bool { return !c.underWay(device) })
		select {
		case <-done:
			quiet = true
		default:
		}
		o.unlockAndAct()
		select {
		case <-done:
		case <-ctx.Done():
			return f, fmt.Errorf("waiting for a trigger that is under way: %w", ctx.Err())
		}
	}
	var err error
	if f.Parked, err = o.Purge(ctx, Filter{Device: device}); err != nil {
		return f, err
	}
	for d, err := range q.Dead(ctx, Filter{Device: device}) {
		if err == nil {
			err = q.DeleteDead(ctx, d.Seq)
		}
		if err != nil {
			return f, fmt.Errorf("deleting dead letters, after %d: %w", f.Dead, err)
		}
		f.Dead++
	}
	return f, nil
}

// at returns the slot of that name, nil if it is not in the table.
func (c *core) at(id Slot) *slot {
	if id.Partition >= len(c.partitions) || c.partitions[id.Partition] == nil {
		return nil
	}
	return c.partitions[id.Partition].slots[id.Index]
}

func (c *core) busyAt(id Slot) bool {
	s := c.at(id)
	return s != nil && s.busy
}

// seize takes a slot that nobody is at, so that the item of that position can
// be deleted. No slot: it is not known to have anything, and the deletion
// needs no care. parked is false for an item that was settled before.
func (c *core) seize(id Slot, seq uint64) (s *slot, parked bool) {
	s = c.at(id)
	if s == nil {
		return nil, true
	}
	if seq <= s.after {
		return nil, false
	}
	c.begin(s)
	return s, true
}

// purged gives a seized slot back. The deletion counts whether or not the
// park of the item has been acknowledged: the acknowledgement will be counted
// too. If it failed, the count may be too high now, which is corrected.
func (c *core) purged(now time.Duration, s *slot, seq uint64, deleted bool) {
	if deleted && !s.orphan {
		if s.stored > 0 {
			c.addStored(s, -1)
		}
		// What is known of the first item goes unless it is surely another's.
		if s.head == nil || s.head.Seq == seq {
			s.forgetHead()
		}
	}
	c.end(now, s, true)
}

// removeWaiting takes the triggers of a device out of memory, save those that
// are at a worker or on their way to the queue, and returns how many it took.
func (c *core) removeWaiting(now time.Duration, device string) int {
	n := 0
	for _, s := range c.slotsOf(device) {
		p := c.partitions[s.id.Partition]
		inLane := s.state == live && p.owned
		var kept run
		for s.run.n > 0 {
			e := s.run.pop()
			if e.trigger.Device != device {
				kept.push(e)
				continue
			}
			if inLane {
				c.lane--
			} else {
				c.outside -= e.size
				c.outCount--
			}
			c.settle(e)
			n++
		}
		s.run = kept
		if l := s.links[parkLink].in; l != nil && s.unacked == nil && kept.n == 0 {
			l.remove(s)
		}
		c.file(now, s, true)
	}
	return n
}

// underWay says that a trigger of a device may be at a worker or on its way to
// the queue.
func (c *core) underWay(device string) bool {
	for _, s := range c.slotsOf(device) {
		if s.busy || s.unacked != nil && s.unacked.trigger.Device == device {
			return true
		}
	}
	return false
}

// slotsOf returns the slots that may hold triggers of a device.
func (c *core) slotsOf(device string) []*slot {
	var slots []*slot
	index := router.SlotOf(device)
	for _, p := range c.partitions {
		if p != nil && p.slots[index] != nil {
			slots = append(slots, p.slots[index])
		}
	}
	return slots
}

package router

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tripline/tripline/geofence"
)

// ErrStopped says that a partition is not running.
var ErrStopped = errors.New("partition is not running")

// Do runs f on the partition's own goroutine and waits for it. f has the
// tracker for itself; it must be quick, must not change the tracker, and must
// not keep what it gets. A change of the consumers that was stored before Do
// is in force when it returns.
func (p *Partition) Do(ctx context.Context, f func(*geofence.Tracker)) error {
	return p.command(ctx, func(context.Context) { f(p.tracker) })
}

// command waits for the loop to take f, and for f. ctx bounds only the first:
// once begun, f is waited for.
func (p *Partition) command(ctx context.Context, f func(context.Context)) error {
	done := make(chan struct{})
	select {
	case p.commands <- func(ctx context.Context) { defer close(done); f(ctx) }:
		<-done
		return nil
	case <-p.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refence moves the partition to the newest fences of its index and judges
// the devices inside changed and deleted ones again. changed lists the ids
// that were put or deleted. It returns when their triggers are handed over.
func (p *Partition) Refence(ctx context.Context, changed []string) error {
	return p.command(ctx, func(ctx context.Context) {
		// Their saved presences name the old versions, which may go once
		// nothing names them.
		now := time.Now()
		for _, id := range changed {
			for name := range p.tracker.Inside(id) {
				p.devices.changed(p.devices.get(name), p.pos, p.pos+1, now)
			}
		}
		p.refence(ctx)
	})
}

// Presence returns what is known of a device.
func (p *Partition) Presence(ctx context.Context, name string) (presence geofence.Presence, ok bool, err error) {
	err = p.Do(ctx, func(t *geofence.Tracker) { presence, ok = t.Presence(name) })
	return presence, ok, err
}

// Inside returns the devices that are inside a fence, sorted.
func (p *Partition) Inside(ctx context.Context, fence string) (names []string, err error) {
	err = p.Do(ctx, func(t *geofence.Tracker) { names = collect(t.Inside(fence), -1) })
	return names, err
}

// Devices returns what is known of up to limit devices, in no order; all of
// them if limit is negative.
func (p *Partition) Devices(ctx context.Context, limit int) (presences []geofence.Presence, err error) {
	err = p.Do(ctx, func(t *geofence.Tracker) {
		for _, name := range collect(t.Devices(), limit) {
			if presence, ok := t.Presence(name); ok {
				presences = append(presences, presence)
			}
		}
	})
	return presences, err
}

// Versions returns the ids of the fences that the presences name now.
func (p *Partition) Versions(ctx context.Context) (ids []string, err error) {
	err = p.Do(ctx, func(t *geofence.Tracker) {
		for f := range t.FenceVersions() {
			ids = append(ids, f.ID)
		}
	})
	return ids, err
}

// collect returns up to limit values; all of them if limit is negative.
func collect(seq iter.Seq[string], limit int) []string {
	var out []string
	for v := range seq {
		if len(out) == limit {
			break
		}
		out = append(out, v)
	}
	return out
}

// Forget drops what is known of a device, and returns when that is durable;
// false if nothing was known. Triggers of it that outlets hold are delivered.
// Its fixes must be gone from the log before, or a restart reads them again.
func (p *Partition) Forget(ctx context.Context, name string) (bool, error) {
	known := false
	var ticket uint64
	err := p.command(ctx, func(context.Context) {
		known = p.tracker.Forget(name)
		d := p.devices.get(name)
		p.devices.remove(d)
		ticket = p.ledger.forget(d)
	})
	if err != nil {
		return false, err
	}
	return known, p.awaitTicket(ctx, ticket)
}

// awaitTicket waits until a removal is durable.
func (p *Partition) awaitTicket(ctx context.Context, ticket uint64) error {
	for {
		durable, done := p.ledger.removals(ticket)
		if done {
			return nil
		}
		select {
		case <-durable:
		case <-p.stopped:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Status is where a partition stands.
type Status struct {
	// Started: the partition is claimed and what was saved is loaded.
	Started bool
	// Position is that of the last message judged; Offset is where the first
	// unsettled trigger is, or behind Position; Committed is the durable
	// offset, and ReplayFrom the durable position a restart reads from.
	Position, Offset, Committed, ReplayFrom uint64
	// Clock is the partition's clock, unix milliseconds.
	Clock int64
	// Lag is the age of the oldest unsettled trigger; 0 if there is none.
	Lag time.Duration
	// Unsettled counts device positions with triggers that are not settled.
	Unsettled int
	// Devices counts tracked devices; Unsaved those with a change that no
	// durable presence contains.
	Devices, Unsaved int
}

// Status returns where the partition stands, without waiting for the loop:
// what only the loop knows is as of its last message.
func (p *Partition) Status() Status {
	return p.ledger.status(time.Now())
}

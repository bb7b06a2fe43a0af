package router

import (
	"context"
	"time"

	"github.com/tripline/tripline/geofence"
)

// turn collects what one position makes happen. All of it is judged, encoded
// and registered in the ledger before the first trigger is offered: an outlet
// may settle a trigger at once, or make the loop wait.
//
// It belongs to the loop. Its slices are used again from turn to turn.
type turn struct {
	p           *Partition
	pos         uint64 // that of the sequences, or 0 for right behind the device's last
	hold        uint64 // where its triggers hold the offset
	traceparent string
	read        time.Time
	claims      []*claim
	offers      []offer
	body        []byte
}

type offer struct {
	outlet  Outlet
	trigger Trigger
	claim   *claim
}

func (t *turn) begin(pos, hold uint64, traceparent string, read time.Time) {
	t.pos, t.hold, t.traceparent, t.read = pos, hold, traceparent, read
}

// take encodes transitions for the consumers that want them. It must be
// called before the tracker is used again, which may overwrite what they
// point to.
func (t *turn) take(transitions []geofence.Transition, now time.Time) {
	for i := range transitions {
		t.takeOne(&transitions[i], now)
	}
}

func (t *turn) takeOne(tr *geofence.Transition, now time.Time) {
	d := t.p.devices.get(tr.Device)
	pos, ord := d.place(t.pos)
	c := t.claim(d, now)

	var trigger Trigger
	wanted := 0
	consumers := t.p.cfg.Consumers.Load()
	if consumers == nil {
		consumers = &[]Consumer{}
	}
	for _, consumer := range *consumers {
		priority, ok, err := consumer.Match.Evaluate(tr)
		if err != nil {
			t.p.cfg.Hooks.whereFailed(consumer.Name, err)
		}
		if !ok {
			continue
		}
		if wanted == 0 {
			trigger = t.trigger(tr, d, Sequence(pos, ord))
		}
		wanted++
		trigger.Priority = priority
		t.offers = append(t.offers, offer{consumer.Outlet, trigger, c})
	}
	c.left += wanted
	t.p.cfg.Hooks.transition(tr, wanted)
}

// claim returns the device's claim of this turn.
func (t *turn) claim(d *device, now time.Time) *claim {
	if d.turn == nil {
		d.turn = &claim{dev: d, begun: now}
		t.claims = append(t.claims, d.turn)
	}
	return d.turn
}

func (t *turn) trigger(tr *geofence.Transition, d *device, sequence string) Trigger {
	id := TriggerID(tr)
	t.body = AppendBody(t.body[:0], t.p.cfg.Namespace, id, sequence, tr)
	fence := ""
	if tr.Fence != nil {
		fence = tr.Fence.ID
	}
	return Trigger{
		ID:          id,
		Sequence:    sequence,
		Device:      d.name,
		Fence:       fence,
		Kind:        tr.Kind,
		At:          tr.At,
		Partition:   t.p.cfg.Partition,
		Slot:        SlotOf(d.name),
		Body:        append([]byte(nil), t.body...),
		Traceparent: t.traceparent,
		Read:        t.read,
	}
}

// end registers what was taken and offers it, in order. If ctx ends, the rest is
// not offered: it stays unsettled, and comes again after a restart.
func (t *turn) end(ctx context.Context) {
	if len(t.claims) == 0 {
		return
	}
	for _, c := range t.claims {
		c.dev.turn = nil
		if !c.dev.gone {
			c.presence, c.contained = t.p.presence(c.dev)
			c.dev.unsaved++
		}
	}
	l := t.p.ledger
	l.add(t.claims, t.hold)
	t.p.publish()
	for _, o := range t.offers {
		if ctx.Err() != nil {
			break
		}
		o.outlet.Offer(ctx, o.trigger, func() { l.settle(o.claim) })
	}
	clear(t.claims)
	clear(t.offers)
	t.claims, t.offers = t.claims[:0], t.offers[:0]
}

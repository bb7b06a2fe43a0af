package router

import (
	"context"
	"time"

	"github.com/tripline/tripline/geofence"
)

// judgeBatch judges a batch and gives it back.
func (p *Partition) judgeBatch(ctx context.Context, b *Batch) {
	now := time.Now()
	p.watch.heard(now)
	for i := range b.Messages {
		if ctx.Err() != nil {
			break // what is not judged is read again
		}
		p.judge(ctx, &b.Messages[i], b.Read, now)
	}
	p.cfg.Hooks.judged(len(b.Messages), time.Since(now))
	if b.Release != nil {
		b.Release()
	}
	p.readFrom.Store(p.pos + 1)
}

// judge takes one message: first the timers that are due at the time at which
// it was stored, then its fix. All that this makes happen belongs to the
// message's position.
func (p *Partition) judge(ctx context.Context, m *Message, read, now time.Time) {
	pos := m.Seq
	if p.cfg.Core {
		// The wall clock may go back over a restart; positions must not.
		pos = max(pos, p.pos+1)
	} else if pos <= p.pos {
		return // a restarted reader repeats some
	}
	p.pos = pos
	p.clock = max(p.clock, m.Stored)
	p.turn.begin(pos, pos, m.Traceparent, read)
	p.advance(now)
	if m.Kind == FixMessage {
		p.judgeFix(m, now)
	}
	p.turn.end(ctx)
}

// judgeFix tracks the message's fix and answers whoever submitted it.
func (p *Partition) judgeFix(m *Message, now time.Time) {
	fix := &m.Fix
	fix.Seq = p.pos
	if p.pos <= p.replayUntil && !p.cfg.Core && p.tracker.Seq(fix.Device) >= p.pos {
		return // the saved presence contains it
	}
	d := p.devices.byName[fix.Device]
	known := &geofence.Handle{}
	if d != nil {
		known = &d.known
	}
	var result geofence.Result
	p.scratch, result = p.tracker.TrackBy(known, fix, p.clock, p.scratch[:0])
	switch result {
	case geofence.Accepted, geofence.Buffered, geofence.Teleport: // these are remembered
		if d == nil {
			d = p.devices.get(fix.Device)
		}
		d.fix, d.stored = p.pos, fix.Stored
		p.devices.changed(d, p.pos, p.pos, now)
	}
	p.turn.take(p.scratch, now)
	p.cfg.Hooks.fix(fix, result)
	if m.Reply != "" {
		p.cfg.Source.Answer(m.Reply, answer(m.Seq, result, len(p.scratch)))
	}
}

// advance fires the timers that are due, and removes whom the tracker forgot.
func (p *Partition) advance(now time.Time) {
	if due, ok := p.tracker.Next(); !ok || due > p.clock {
		return
	}
	p.scratch = p.tracker.Advance(p.clock, p.scratch[:0])
	p.turn.take(p.scratch, now)
	p.names = p.tracker.Forgotten(p.names[:0])
	for _, name := range p.names {
		d := p.devices.get(name)
		if _, back := p.tracker.Presence(name); back || p.waits(d) {
			// It has reported again since; the next flush saves that.
			p.devices.changed(d, p.pos, p.pos, now)
			continue
		}
		p.devices.remove(d)
		p.ledger.forget(d)
	}
}

// advanceCore fires timers by the wall clock.
func (p *Partition) advanceCore(ctx context.Context, now time.Time) {
	due, ok := p.tracker.Next()
	if !ok || due > now.UnixMilli() {
		return
	}
	p.clock = max(p.clock, now.UnixMilli())
	p.pos = max(p.pos+1, uint64(now.UnixMicro()))
	p.turn.begin(p.pos, p.pos, "", now)
	p.advance(now)
	p.turn.end(ctx)
}

// refence judges devices inside changed fences again. No message caused it,
// so it happens between the last position and the next: its triggers hold the
// offset at the next one. Their sequences follow what each device has had so
// far, wherever the partition is: a crash that has the devices judged again
// then gives the same ones.
func (p *Partition) refence(ctx context.Context) {
	now := time.Now()
	p.turn.begin(0, p.pos+1, "", now)
	p.scratch = p.tracker.Refence(p.clock, p.scratch[:0])
	p.turn.take(p.scratch, now)
	p.turn.end(ctx)
}

// answer is what a submitter is told.
func answer(seq uint64, result geofence.Result, transitions int) Answer {
	a := Answer{Seq: seq, Transitions: transitions}
	switch result {
	case geofence.Accepted, geofence.Buffered:
		a.OK = true
	case geofence.Late:
		a.Error = "older than the device's newest location"
	case geofence.Duplicate:
		a.Error = "the device's newest location has the same ts"
	case geofence.Future:
		a.Error = "ts is too far ahead of the clock"
	case geofence.Inaccurate:
		a.Error = "accuracy is worse than the rules allow"
	case geofence.Teleport:
		a.Error = "the device can't have moved that fast"
	}
	if !a.OK {
		a.Reason = result.String()
	}
	return a
}

package ingest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/router"
)

// track is what has been read of one partition.
type track struct {
	d         *Durable
	partition int
	batches   batches
	filling   *router.Batch
	next      uint64 // the first sequence that was not read yet
	clock     int64  // the highest stored time, unix ms
}

func newTrack(d *Durable, partition int, from uint64) track {
	t := track{d: d, partition: partition, next: from, batches: newBatches()}
	t.filling = t.batches.get()
	return t
}

// begin holds the next sequence against what the stream still has.
func (t *track) begin(first, last uint64) error {
	if t.next > last+1 {
		return fmt.Errorf("%w: it ends at %d, and partition %d was read up to %d", errRewound, last, t.partition, t.next-1)
	}
	if t.next > 0 && first > t.next {
		t.d.hooks.lost(t.partition, first-t.next)
	}
	t.next = max(t.next, first, 1)
	return nil
}

// fill takes a message into the batch that is being filled, which has room.
func (t *track) fill(at delivery, msg *nats.Msg) {
	if at.stream < t.next {
		return
	}
	t.next = at.stream + 1
	t.clock = max(t.clock, at.stored)
	m := next(t.filling)
	m.Seq, m.Stored = at.stream, t.clock
	if reply := msg.Header[replyHeader]; len(reply) > 0 && t.d.answerable(reply[0]) {
		m.Reply = reply[0]
	}
	_, subject := splitStored(msg.Subject)
	t.d.fill(m, subject, msg.Data, msg.Header)
}

// bounds are the first and the last sequence of the stream.
func (d *Durable) bounds(ctx context.Context) (first, last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := d.js.Stream(ctx, d.stream)
	if err != nil {
		return 0, 0, fmt.Errorf("looking up stream %s: %w", d.stream, err)
	}
	state := stream.CachedInfo().State
	return state.FirstSeq, state.LastSeq, nil
}

// reader reads one partition through a consumer of its own. All fields belong
// to the goroutine that runs session.
type reader struct {
	track
	out chan<- *router.Batch
	*puller
}

// session makes a consumer at the next sequence and reads until it breaks.
func (r *reader) session(ctx context.Context, changed <-chan nats.Status) error {
	d := r.track.d
	first, last, err := d.bounds(ctx)
	if err != nil {
		return err
	}
	if err := r.begin(first, last); err != nil {
		return err
	}
	partition := strconv.Itoa(r.partition)
	p, stop, err := open(ctx, d, partition, "loc."+partition+".>", r.next)
	if err != nil {
		return err
	}
	defer stop()
	r.puller = p
	return r.loop(ctx, changed)
}

// loop takes messages into the batch that is being filled, and hands it over
// as soon as somebody takes it. While a full batch waits, nothing more is taken.
func (r *reader) loop(ctx context.Context, changed <-chan nats.Status) error {
	heard := newSilence(r.puller.d.pull.silence)
	defer heard.stop()
	for {
		if err := r.ask(); err != nil {
			return err
		}
		in, out := r.msgs, r.out
		if full(r.filling) {
			in = nil
		}
		if len(r.filling.Messages) == 0 {
			out = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return errReconnected
		case out <- r.filling:
			r.filling = r.batches.get()
		case msg := <-in:
			heard.something()
			if err := r.take(msg); err != nil {
				return err
			}
		case <-heard.tick.C:
			if heard.tooLong(in != nil) {
				return errSilent
			}
		}
	}
}

// take handles a message and those that wait behind it.
func (r *reader) take(msg *nats.Msg) error {
	for {
		at, ok, err := r.accept(msg)
		if err != nil {
			return err
		}
		if ok {
			r.fill(at, msg)
		}
		if full(r.filling) {
			break
		}
		select {
		case msg = <-r.msgs:
			continue
		default:
		}
		break
	}
	r.filling.Read = time.Now()
	return nil
}

// silence measures for how long nothing has been heard of a consumer.
type silence struct {
	tick  *time.Ticker // twice as fast as the silence that is too long
	quiet int          // ticks since the last sign of life
}

func newSilence(tooLong time.Duration) *silence { return &silence{tick: time.NewTicker(tooLong / 2)} }

func (s *silence) stop()      { s.tick.Stop() }
func (s *silence) something() { s.quiet = 0 }

// tooLong is asked at each tick. While we don't listen, nothing is heard.
func (s *silence) tooLong(listening bool) bool {
	if !listening {
		s.quiet = 0
	}
	s.quiet++
	return s.quiet > 2
}

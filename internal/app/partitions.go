package app

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

func (s *service) openPartitions(context.Context) error {
	if s.keeper != nil {
		return nil // each is made when it is leased
	}
	for number := range s.held.total() {
		s.held.add(number, func() *router.Partition { return s.newPartition(number) })
	}
	return nil
}

// runPartitions runs them: those that are leased, or all.
func (s *service) runPartitions(ctx context.Context, group *errgroup.Group) {
	if s.keeper != nil {
		group.Go(func() error { return s.keeper.Run(ctx) })
		group.Go(func() error { return s.roster.parts.breakers.run(ctx, s.roster.find) })
		return
	}
	for _, p := range s.held.each() {
		group.Go(func() error { return p.Run(ctx) })
	}
	if s.trim != nil {
		group.Go(func() error { return s.trim.Run(ctx) })
	}
}

func (s *service) newPartition(number int) *router.Partition {
	return router.NewPartition(router.PartitionConfig{
		Partition: number,
		Namespace: s.cfg.NATS.Namespace,
		Source:    s.source,
		Store:     s.store,
		Fences:    s.index,
		Versions:  s.store.Versions(),
		Tracker:   s.trackerConfig(),
		Consumers: &s.roster.list,
		Core:      !s.cfg.Ingest.Durable,
		Hooks:     s.partitionHooks(number),
	})
}

// trackerConfig is the tracker's configuration with the kinds that somebody
// wants: the others cost nothing.
func (s *service) trackerConfig() geofence.Config {
	c := TrackerConfig(s.cfg.Tracking)
	c.Cross = wants(s.cfg.Consumers, geofence.Cross)
	c.Inside = wants(s.cfg.Consumers, geofence.Inside)
	return c
}

// wants tells whether any of the consumers asks for a kind of transition.
func wants(consumers []config.Consumer, kind geofence.Kind) bool {
	return slices.ContainsFunc(consumers, func(c config.Consumer) bool {
		return slices.ContainsFunc(c.Match, func(m config.Match) bool {
			return slices.Contains(m.Transitions, kind.String())
		})
	})
}

// TrackerConfig turns the configured rules into the tracker's.
func TrackerConfig(t config.Tracking) geofence.Config {
	return geofence.Config{
		MaxFuture:     t.MaxFuture,
		CrossMaxGap:   t.CrossMaxGap,
		SilentInitial: t.Initial == config.InitialSilent,
		ExitBufferM:   t.ExitBufferM,
		Confirm:       t.Confirm,
		Dwell:         t.Dwell,
		MaxAccuracyM:  t.MaxAccuracyM,
		Reorder:       t.Reorder,
		MaxSpeed:      t.MaxSpeed,
		InsideEvery:   t.InsideEvery,
		SilentAfter:   t.SilentAfter,
		ForgetAfter:   t.ForgetAfter,
	}
}

// partitionHooks counts, shows and logs what a partition does.
func (s *service) partitionHooks(number int) router.Hooks {
	h := s.metrics.Partition(number)
	counted := h
	log := s.log.With("partition", number)
	h.Fix = func(fix *geofence.Fix, result geofence.Result) {
		counted.Fix(fix, result)
		if result == geofence.Future {
			s.source.Reject(fix, tooFarAhead(fix, s.cfg.Tracking.MaxFuture))
		}
		if result == geofence.Accepted && s.hub.Watched() {
			s.hub.Position(position(fix))
		}
	}
	h.Transition = func(tr *geofence.Transition, consumers int) {
		counted.Transition(tr, consumers)
		if s.hub.Watched() {
			s.hub.Trigger(s.roster.trigger(tr))
		}
		if s.opts.Observer.Transition != nil {
			s.opts.Observer.Transition(tr, consumers)
		}
	}
	h.WhereFailed = func(consumer string, err error) {
		counted.WhereFailed(consumer, err)
		log.Warn("a match's where could not be evaluated; it did not match", "consumer", consumer, "err", err)
	}
	h.ClaimFailed = func(err error) {
		log.Warn("the partition can't be claimed yet; it is tried again and nothing is judged until then", "err", natsconn.Explain(err))
	}
	h.ReaderRestarted = func(reason error) {
		counted.ReaderRestarted(reason)
		log.Warn("reading begins anew from the last position", "reason", reason)
	}
	h.TickFailed = func(err error) {
		log.Warn("storing a tick; dwells wait until one is stored", "err", natsconn.Explain(err))
	}
	return h
}

// tooFarAhead says why a location from the future is refused: a device's clock
// is wrong, and somebody should hear of it.
func tooFarAhead(fix *geofence.Fix, limit time.Duration) *ingest.Refusal {
	ahead := time.Duration(fix.TS-fix.Stored) * time.Millisecond
	return &ingest.Refusal{Reason: ingest.Future, Detail: fmt.Sprintf(
		"ts %s is %v ahead of the time at which it was stored, more than tracking.max_future (%v)",
		time.UnixMilli(fix.TS).UTC().Format(time.RFC3339), ahead.Round(time.Second), limit)}
}

func position(fix *geofence.Fix) live.Position {
	heading := math.NaN()
	if fix.Has&geofence.HasHeading != 0 {
		heading = fix.Heading
	}
	return live.Position{Device: fix.Device, Lat: fix.Lat, Lon: fix.Lon, TS: fix.TS, Heading: heading}
}

// positions yields the newest position of every device, partition by partition,
// for a live page that has just been opened. All are asked at once: one that
// waits, as for room in a queue, holds up none of the others.
func (s *service) positions(ctx context.Context) iter.Seq[[]live.Position] {
	return func(yield func([]live.Position) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		found := make(chan []live.Position)
		go func() {
			defer close(found)
			_ = s.held.do(func(p *router.Partition) error { return s.askPositions(ctx, p, found) })
		}()
		for list := range found {
			if ctx.Err() == nil && !yield(list) {
				cancel()
			}
		}
	}
}

// askPositions sends what a partition knows, unless ctx ends first.
func (s *service) askPositions(ctx context.Context, p *router.Partition, to chan<- []live.Position) error {
	presences, err := p.Devices(ctx, -1)
	if err != nil {
		return err
	}
	now := time.Now()
	list := make([]live.Position, len(presences))
	for i := range presences {
		fix := &presences[i].Newest
		list[i] = position(fix)
		list[i].Age = max(0, now.Sub(time.UnixMilli(fix.Stored)))
	}
	select {
	case to <- list:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// goneAfter is when a device that is not heard of leaves the live page's map:
// no later than nothing is known of it any more.
func (s *service) goneAfter() time.Duration {
	if f := s.cfg.Tracking.ForgetAfter; f > 0 {
		return min(f, live.GoneAfter)
	}
	return live.GoneAfter
}

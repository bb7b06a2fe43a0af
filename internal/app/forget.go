package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

const (
	// judgedWithin bounds the wait for a partition that is behind.
	judgedWithin = 10 * time.Second
	judgedPoll   = 5 * time.Millisecond
)

// forgotten is what was removed of a device.
type forgotten struct {
	OK        bool   `json:"ok"`
	Device    string `json:"device"`
	Known     bool   `json:"known"`     // it had a presence
	Locations uint64 `json:"locations"` // in the location stream
	Waiting   int    `json:"waiting"`   // triggers in memory
	Parked    int    `json:"parked"`
	Dead      int    `json:"dead"`
}

// forget removes what is stored of a device: its locations, its presence, and
// its triggers that have not been delivered, dead letters included. A device
// that goes on sending is known again from its next fix on.
func (s *service) forget(ctx context.Context, device string) (forgotten, error) {
	f := forgotten{OK: true, Device: device}
	// The consumers stay the same meanwhile.
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if err := s.runsHere(device); err != nil {
		return f, err
	}
	if err := s.forgetLocations(ctx, &f); err != nil {
		return f, err
	}
	for _, p := range s.held.each() {
		known, err := p.Forget(ctx, device)
		if err != nil {
			return f, fmt.Errorf("forgetting the presence: %w", err)
		}
		f.Known = f.Known || known
	}
	s.hub.Forget(device)
	for _, m := range s.roster.all() {
		removed, err := m.outlet.Forget(ctx, device)
		f.Waiting, f.Parked, f.Dead = f.Waiting+removed.Waiting, f.Parked+removed.Parked, f.Dead+removed.Dead
		if err != nil {
			return f, fmt.Errorf("consumer %s: %w", m.name, outletError(err))
		}
	}
	if err := s.forgetLeft(ctx, &f); err != nil {
		return f, err
	}
	s.log.Info("an operator had a device forgotten", "known", f.Known, "locations", f.Locations,
		"waiting", f.Waiting, "parked", f.Parked, "dead", f.Dead)
	return f, nil
}

// forgetLocations purges the device's subject of the location stream, once
// everything in it that is the partition's has been judged: what comes out of
// the reader's buffers later would make the device known again.
func (s *service) forgetLocations(ctx context.Context, f *forgotten) error {
	if !s.cfg.Ingest.Durable {
		return nil
	}
	patterns, err := ingest.ParsePatterns(s.cfg.NATS.Namespace, s.cfg.Ingest.Subjects)
	if err != nil {
		return err
	}
	subject, err := patterns.Subject(f.Device)
	if err != nil {
		return nil // with such an id nothing is stored
	}
	// A purge may move the stream's beginning past what an idle partition
	// would read from. After a tick it begins later.
	for number := range s.held.total() {
		if err := s.source.Tick(ctx, number, ""); err != nil {
			return err
		}
	}
	number := router.PartitionOf(subject, s.held.total())
	stream, err := s.nats.js.Stream(ctx, ingest.StreamName(s.cfg.NATS.Namespace))
	if err != nil {
		return fmt.Errorf("looking up the location stream: %w", err)
	}
	if err := s.awaitJudged(ctx, stream, number); err != nil {
		return err
	}
	stored := fmt.Sprintf("loc.%d.%s", number, subject)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(stored))
	if err != nil {
		return fmt.Errorf("counting the device's locations: %w", err)
	}
	if f.Locations = info.State.Subjects[stored]; f.Locations == 0 {
		return nil
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(stored)); err != nil {
		return fmt.Errorf("purging the device's locations: %w", err)
	}
	return nil
}

// awaitJudged returns when a partition has judged what is in the stream now.
func (s *service) awaitJudged(ctx context.Context, stream jetstream.Stream, number int) error {
	last, err := stream.GetLastMsgForSubject(ctx, fmt.Sprintf("loc.%d.>", number))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up the partition's last message: %w", err)
	}
	limit := time.NewTimer(judgedWithin)
	defer limit.Stop()
	poll := time.NewTicker(judgedPoll)
	defer poll.Stop()
	for {
		p := s.held.get(number)
		if p == nil {
			return s.elsewhere(number)
		}
		if p.Status().Position >= last.Sequence {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return failf(http.StatusServiceUnavailable,
				"partition %d is behind: locations of the device may still wait to be judged. See /readyz, and ask again", number)
		}
	}
}

// forgetLeft removes what is left of the device with consumers that are not
// configured any more.
func (s *service) forgetLeft(ctx context.Context, f *forgotten) error {
	orphans, err := s.orphans(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{} // whether there is a fallback stream
	for name := range *s.gauges.dead.Load() {
		names[name] = false
	}
	for _, o := range orphans {
		names[o.Consumer] = true
	}
	for name, stream := range names {
		if _, configured := s.roster.find(name); configured {
			continue
		}
		if err := s.forgetOrphaned(ctx, f, name, stream); err != nil {
			return fmt.Errorf("what is left of consumer %s: %w", name, err)
		}
	}
	return nil
}

func (s *service) forgetOrphaned(ctx context.Context, f *forgotten, name string, stream bool) error {
	left := jetqueue.Inspect(s.nats.store, s.cfg.NATS.Namespace, name)
	of := fallback.Filter{Device: f.Device}
	if stream {
		for item, err := range left.Items(ctx, of) {
			if err == nil {
				err = left.Delete(ctx, item.Seq)
			}
			if err != nil {
				return err
			}
			f.Parked++
		}
	}
	for d, err := range left.Dead(ctx, of) {
		if err == nil {
			err = left.DeleteDead(ctx, d.Seq)
		}
		if err != nil {
			return err
		}
		f.Dead++
	}
	return nil
}

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/router"
)

// roster is the list of the consumers at work.
type roster struct {
	parts *parts
	// list is what the partitions read.
	list atomic.Pointer[[]router.Consumer]

	// owning is held, to read, while the outlets take a partition over, and to
	// write while a reload changes who they are.
	owning sync.RWMutex

	mu      sync.Mutex // guards members, and the matches of each
	members []*member
}

func (s *service) openConsumers(ctx context.Context) error {
	s.roster = &roster{parts: &parts{
		namespace: s.cfg.NATS.Namespace, version: s.opts.Version,
		partitions: s.cfg.Ingest.Partitions, grace: s.cfg.ShutdownGrace,
		store: s.nats.store, sinks: s.nats.out,
		metrics: s.metrics, hub: s.hub, observer: s.opts.Observer, log: s.log,
		replicas: s.cfg.NATS.Replicas,
	}}
	if s.keeper != nil {
		s.roster.parts.holds = s.keeper.Holds
		s.roster.parts.breakers = newFleetBreakers(s.nats.out, s.cfg.NATS.Namespace, s.keeper, s.log)
	}
	if err := s.fitQueues(ctx, s.budget); err != nil {
		return err
	}
	for _, c := range s.cfg.Consumers {
		m, err := newMember(ctx, s.roster.parts, c, s.budget)
		if err != nil {
			return errors.Join(err, s.roster.finish())
		}
		s.roster.members = append(s.roster.members, m)
	}
	s.roster.publish()
	return nil
}

// publish hands the partitions the members as they are now.
func (r *roster) publish() {
	list := make([]router.Consumer, len(r.members))
	for i, m := range r.members {
		list[i] = router.Consumer{Name: m.name, Match: m.match, Outlet: m.relay}
	}
	r.list.Store(&list)
}

// all returns the members of the moment.
func (r *roster) all() []*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.members)
}

func (r *roster) find(name string) (*member, bool) {
	for _, m := range r.all() {
		if m.name == name {
			return m, true
		}
	}
	return nil, false
}

// start runs the outlets; finish ends them.
func (r *roster) start(ctx context.Context) {
	for _, m := range r.all() {
		m.start(ctx)
	}
}

// watch returns an error if an outlet ends by itself.
func (r *roster) watch(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		for _, m := range r.all() {
			select {
			case <-m.done:
				if m.retired.Load() {
					continue
				}
				return fmt.Errorf("consumer %s: its outlet has ended: %w", m.name, m.err)
			default:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// finish stops the outlets, all at once, and waits for what they hold to be
// delivered or parked.
func (r *roster) finish() error {
	var group errgroup.Group
	errs := make([]error, len(r.members))
	for i, m := range r.all() {
		group.Go(func() error { errs[i] = m.finish(); return nil })
	}
	group.Wait()
	return errors.Join(errs...)
}

// trigger describes a transition for the live page, with whom it goes to.
func (r *roster) trigger(tr *geofence.Transition) live.Trigger {
	t := live.Trigger{
		ID: router.TriggerID(tr), At: time.UnixMilli(tr.At), Device: tr.Device,
		Transition: tr.Kind.String(), Initial: tr.Initial, Reason: tr.Reason,
		Consumers: []string{},
	}
	if tr.Fence != nil {
		t.Fence = tr.Fence.ID
	}
	for _, c := range *r.list.Load() {
		if _, wants := c.Match.Accept(tr); wants {
			t.Consumers = append(t.Consumers, c.Name)
		}
	}
	return t
}

// view is the member's state as the API and the live page show it.
func (m *member) view(perSecond float64) live.Consumer {
	s := m.outlet.Status()
	b, limits := s.Breaker, m.outlet.Breaker().Config()
	v := live.Consumer{
		Name: m.name, Sink: m.sink.kind, Target: m.sink.target,
		State: b.State.String(), Reason: b.Text, Since: m.date(b.Since),
		AliveButSlow: b.AliveButSlow,
		P50MS:        millis(b.P50), P99MS: millis(b.P99), P99LimitMS: millis(limits.P99),
		Samples: b.Calls, SlowRatio: b.SlowRatio, ErrorRatio: b.ErrorRatio,
		Rung: b.Rung, Generation: b.Generation,
		ProbesInFlight: b.ProbesInFlight, Probes: limits.Probes,
		Successes: b.Successes, SuccessesNeeded: limits.Successes,
		RampWindow: b.RampWindow, Concurrency: s.Concurrency, InFlight: s.InFlight,
		LaneDepth: s.Lane, LaneCap: s.LaneMax,
		Backlog: live.Backlog{
			Items: s.Backlog, Bytes: s.BacklogBytes, MaxBytes: s.BacklogMax, ReplayPerS: s.ReplayRate,
		},
		DeliveredTotal: s.Delivered, DeliveredPerS: perSecond,
		DivertedTotal: m.diverted.Load(),
		Disabled:      s.Disabled, Paused: s.Paused, Blocked: s.Blocked,
		LastErrors: []live.Error{},
	}
	if b.State.String() == "open" {
		until := m.date(b.Until)
		v.OpenUntil = &until
	}
	if b.AliveButSlow {
		v.P50MS = millis(b.SlowP50)
	}
	if s.Backlog > 0 && !s.Oldest.IsZero() {
		v.Backlog.OldestS = time.Since(s.Oldest).Seconds()
	}
	if s.ETA > 0 {
		seconds := s.ETA.Seconds()
		v.Backlog.ETAS = &seconds
	}
	for _, e := range s.Errors {
		v.LastErrors = append(v.LastErrors, live.Error{At: e.At, Text: e.Text})
	}
	return v
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

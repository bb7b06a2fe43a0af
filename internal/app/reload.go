package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/router"
)

// errNoReload says that whoever started the service gave it no way to read the
// configuration again.
var errNoReload = errors.New("this service can't reload its configuration")

// reload reads the configuration again and puts the consumers of the new one
// to work. Those that are the same as before don't notice. With a
// configuration that is wrong, or changes what only a restart can change,
// everything stays as it was.
func (s *service) reload(ctx context.Context) error {
	if s.opts.Reload == nil {
		return errNoReload
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next, err := s.opts.Reload()
	if err != nil {
		return fmt.Errorf("reload: %w; the old configuration stays in force", err)
	}
	if fixed := needRestart(s.cfg, next); len(fixed) > 0 {
		return fmt.Errorf("reload: %s changed, which takes a restart; the old configuration stays in force", strings.Join(fixed, ", "))
	}
	budget, err := next.Budget(config.Size(s.nats.maxStore))
	if err != nil {
		return fmt.Errorf("reload: %w; the old configuration stays in force", err)
	}
	if err := s.fitQueues(ctx, budget); err != nil {
		return fmt.Errorf("reload: %w; the old configuration stays in force", err)
	}
	if err := s.roster.reload(ctx, next.Consumers, budget, s.barrier); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	s.cfg.Consumers, s.budget = next.Consumers, budget
	s.log.Info("configuration reloaded", "consumers", len(next.Consumers))
	return nil
}

// fitQueues makes room in the store for the queues as they are to be.
func (s *service) fitQueues(ctx context.Context, budget config.Budget) error {
	want := make(map[string]int64, len(budget.Fallback))
	for consumer, size := range budget.Fallback {
		want[consumer] = int64(size)
	}
	return jetqueue.Fit(ctx, s.nats.store, s.cfg.NATS.Namespace, want)
}

// needRestart names the sections that differ and can't change at run time.
func needRestart(old, next *config.Config) []string {
	var differ []string
	for name, pair := range map[string][2]any{
		"nats":           {old.NATS, next.NATS},
		"ingest":         {old.Ingest, next.Ingest},
		"tracking":       {old.Tracking, next.Tracking},
		"fences":         {old.Fences, next.Fences},
		"admin":          {old.Admin, next.Admin},
		"log":            {old.Log, next.Log},
		"shutdown_grace": {old.ShutdownGrace, next.ShutdownGrace},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	for _, kind := range []geofence.Kind{geofence.Cross, geofence.Inside} {
		if wants(next.Consumers, kind) && !wants(old.Consumers, kind) {
			differ = append(differ, "whether any consumer wants "+kind.String())
		}
	}
	return differ
}

// barrier returns when every partition works with the consumers that have
// been published before.
func (s *service) barrier(ctx context.Context) error {
	return s.held.do(func(p *router.Partition) error {
		return p.Do(ctx, func(*geofence.Tracker) {})
	})
}

// reload makes the members those of the new configuration. Everything that
// can fail is done before anything changes.
func (r *roster) reload(ctx context.Context, next []config.Consumer, budget config.Budget, barrier func(context.Context) error) error {
	old := map[string]*member{}
	for _, m := range r.all() {
		old[m.name] = m
	}
	var members, fresh []*member
	var rematch []func()
	replaced := map[*member]*member{} // by successor
	for _, c := range next {
		was := old[c.Name]
		delete(old, c.Name)
		if was != nil && sameOutlet(was.cfg, c) {
			match, err := CompileMatch(c)
			if err != nil {
				return errors.Join(err, discard(fresh))
			}
			members = append(members, was)
			rematch = append(rematch, func() { was.cfg, was.match = c, match })
			continue
		}
		m, err := newMember(ctx, r.parts, c, budget)
		if err != nil {
			return errors.Join(err, discard(fresh))
		}
		fresh = append(fresh, m)
		members = append(members, m)
		if was != nil {
			m.relay = was.relay
			replaced[m] = was
		}
	}

	r.owning.Lock() // no partition comes meanwhile that a new one would miss
	defer r.owning.Unlock()
	// Successors take over first: until then what is offered to them waits.
	background := context.WithoutCancel(ctx)
	for m, was := range replaced {
		if err := was.retire(); err != nil {
			return fmt.Errorf("consumer %s could not be replaced: %w; a restart puts it right", m.name, err)
		}
	}
	for _, m := range fresh {
		m.start(background)
		r.adopt(background, m)
		if replaced[m] != nil {
			m.relay.replace(m.outlet)
		}
	}
	r.mu.Lock()
	for _, change := range rematch {
		change()
	}
	r.members = members
	r.publish()
	r.mu.Unlock()
	for _, m := range members {
		m.outlet.Enable() // what had answered 410 is called again: a reload says so
	}

	// What is left in old is no longer wanted. Once no partition offers to
	// it, it is drained; its backlog stays.
	if err := barrier(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(old)) {
		m := old[name]
		errs = append(errs, m.retire())
		r.parts.metrics.Forget(name)
		r.parts.log.Info("consumer removed; its backlog stays until it is purged or a consumer of that name takes it over",
			"consumer", name, "backlog", m.outlet.Status().Backlog)
	}
	return errors.Join(errs...)
}

// sameOutlet tells whether two configurations of a consumer differ in nothing
// but what they match.
func sameOutlet(a, b config.Consumer) bool {
	a.Match, b.Match = nil, nil
	a.Path, b.Path = "", ""
	return reflect.DeepEqual(a, b)
}

// retire ends a member that the configuration no longer has.
func (m *member) retire() error {
	m.outlet.Retire()
	m.retired.Store(true)
	err := m.finish()
	m.retired.Store(err == nil) // an outlet that did not end well ends the service
	return err
}

// discard gives back members that never ran.
func discard(fresh []*member) error {
	var errs []error
	for _, m := range fresh {
		errs = append(errs, m.finish())
	}
	return errors.Join(errs...)
}

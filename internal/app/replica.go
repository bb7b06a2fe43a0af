package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/admin"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/lease"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

// handOverTimeout bounds the graceful end of one partition: calls that end,
// parks, the last commit.
const handOverTimeout = 20 * time.Second

// openLeases makes this process a replica among others: the partitions run
// only while they are leased. A process with a server of its own is alone, and
// core mode has nothing that could be handed over.
func (s *service) openLeases(ctx context.Context) (err error) {
	if !s.replicated() {
		return nil
	}
	s.keeper, err = lease.Open(ctx, s.nats.js, lease.Config{
		Namespace:  s.cfg.NATS.Namespace,
		Partitions: s.cfg.Ingest.Partitions,
		Replicas:   s.cfg.NATS.Replicas,
		Name:       instance(), Admin: s.adminURL(),
		Timing: s.opts.Leases,
		Home:   s.opts.Home,
		Serve:  s.serve,
		Hooks:  s.leaseHooks(),
	})
	return err
}

// replicated says whether the partitions are leased.
func (s *service) replicated() bool { return !s.cfg.NATS.Embedded() && s.cfg.Ingest.Durable }

// manyReplicas says that this process has less than half of the partitions:
// then each is better read by itself than the whole stream by everybody.
func (s *service) manyReplicas() bool { return s.keeper != nil && len(s.keeper.View().Replicas) > 2 }

func (s *service) leaseHooks() lease.Hooks {
	tell := func(what string) func(lease.Replica) {
		return func(r lease.Replica) { s.log.Info(what, "replica", r.Name, "id", r.ID) }
	}
	return lease.Hooks{
		Joined: func(r lease.Replica) {
			tell("another replica is there")(r)
			s.separateReaders()
		},
		Left:     tell("a replica has left"),
		Gone:     tell("a replica is gone; its partitions are taken over"),
		Gained:   func(p []int) { s.log.Info("partitions gained", "count", len(p), "partitions", spans(p)) },
		Released: func(p []int) { s.log.Info("partitions handed over", "count", len(p), "partitions", spans(p)) },
		Lost: func(p []int) {
			s.log.Warn("partitions lost; they stop at once", "count", len(p), "partitions", spans(p))
		},
		Ended: func(p int, err error) {
			s.log.Warn("a partition has ended by itself; it starts again", "partition", p, "err", err)
		},
		Expired: func() { s.log.Error("the leases could not be renewed in time: everything stops until NATS answers") },
		Killed:  func() { s.log.Error("the other replicas have counted this one as gone; it joins anew") },
		Failed: func(err error) {
			s.log.Warn("the leases' bucket does not answer well; it is asked again", "err", natsconn.Explain(err))
		},
	}
}

// separateReaders has the partitions read by themselves if that is better now.
func (s *service) separateReaders() {
	if durable, ok := s.source.(*ingest.Durable); ok && s.manyReplicas() {
		durable.Separate()
	}
}

// serve runs one partition while it is ours: first the outlets read what is
// parked of it, so that nothing goes live ahead of that, then it claims its
// state and reads on from there.
func (s *service) serve(stay lease.Stay) error {
	number := stay.Partition
	// ctx ends when the partition is to stop, lost when it is to stop at once.
	ctx, stop := context.WithCancel(context.Background())
	lost, lose := context.WithCancel(context.Background())
	done := make(chan struct{})
	var follow sync.WaitGroup
	follow.Go(func() {
		select {
		case <-stay.HandOver:
			stop()
		case <-stay.Lost:
		case <-done:
			return
		}
		select {
		case <-stay.Lost:
			lose()
			s.roster.abandon(number)
			stop()
		case <-done:
		}
	})
	defer func() {
		close(done)
		follow.Wait()
		stop()
		lose()
	}()

	err := s.runHeld(ctx, number)
	if lost.Err() != nil || errors.Is(err, router.ErrFenced) {
		// Somebody else may run it by now: nothing of ours may come after.
		s.roster.abandon(number)
		s.held.remove(number)
		return err
	}
	limit, cancel := context.WithTimeout(lost, handOverTimeout)
	defer cancel()
	s.roster.disown(limit, number, s.cfg.ShutdownGrace)
	if p := s.held.get(number); p != nil && p.Status().Started {
		if closing := p.Close(limit); closing != nil && lost.Err() == nil {
			s.log.Warn("saving the progress of a partition that is handed over; its next owner reads the rest again", "partition", number, "err", closing)
		}
	}
	s.held.remove(number)
	return err
}

// runHeld runs a partition, and what goes with it, until ctx ends or it fails.
func (s *service) runHeld(ctx context.Context, number int) error {
	if err := s.roster.own(ctx, number); err != nil {
		return err
	}
	p := s.held.add(number, func() *router.Partition { return s.newPartition(number) })
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(groupCtx) })
	if number == 0 {
		group.Go(func() error { return s.trim.Run(groupCtx) })
	}
	return group.Wait()
}

// own makes every outlet serve a partition.
func (r *roster) own(ctx context.Context, number int) error {
	r.owning.RLock() // no reload meanwhile
	defer r.owning.RUnlock()
	for _, m := range r.all() {
		if err := m.outlet.Own(ctx, number); err != nil {
			return fmt.Errorf("consumer %s: %w", m.name, err)
		}
	}
	return nil
}

// disown ends a partition's part of the outlets: what waits in memory is
// delivered within the grace, then parked.
func (r *roster) disown(ctx context.Context, number int, grace time.Duration) {
	drain, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	var group sync.WaitGroup
	for _, m := range r.all() {
		group.Go(func() {
			// Whether or not it is in time, the rest is parked.
			_ = m.outlet.Drain(drain, number)
			if err := m.outlet.Disown(ctx, number); err != nil {
				r.parts.log.Warn("not everything could be parked in time; the partition's next owner delivers it", "consumer", m.name, "err", err)
			}
		})
	}
	group.Wait()
}

// abandon ends a partition's part of the outlets at once.
func (r *roster) abandon(number int) {
	for _, m := range r.all() {
		m.outlet.Abandon(number)
	}
}

// adopt makes a new outlet serve what this process holds. It is called under
// owning. While the queue does not answer, triggers wait in memory.
func (r *roster) adopt(ctx context.Context, m *member) {
	if r.parts.holds == nil {
		return // it owns everything by itself
	}
	for number := range r.parts.partitions {
		if r.parts.holds(number) {
			go r.adoptOne(ctx, m, number)
		}
	}
}

func (r *roster) adoptOne(ctx context.Context, m *member, number int) {
	retry := time.NewTicker(500 * time.Millisecond)
	defer retry.Stop()
	for {
		err := m.outlet.Own(ctx, number)
		if !r.parts.holds(number) {
			m.outlet.Abandon(number) // lost meanwhile
			return
		}
		if err == nil {
			return
		}
		r.parts.log.Warn("a new consumer can't read what is parked yet", "consumer", m.name, "partition", number, "err", natsconn.Explain(err))
		select {
		case <-retry.C:
		case <-m.done:
			return
		}
	}
}

// heldQueue parks only what belongs to partitions that are ours.
type heldQueue struct {
	fallback.Queue
	fallback.Inspector
	holds func(partition int) bool
}

// Park implements [fallback.Queue].
func (q heldQueue) Park(t router.Trigger, why fallback.Reason, done func(uint64, error)) {
	if !q.holds(t.Partition) {
		done(0, fallback.ErrNotHeld)
		return
	}
	q.Queue.Park(t, why, done)
}

// spans writes numbers that rise as a list with ranges: 0-4 7 9-15.
func spans(numbers []int) string {
	var b strings.Builder
	for i := 0; i < len(numbers); i++ {
		first := numbers[i]
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(first))
		if numbers[i] > first {
			fmt.Fprintf(&b, "-%d", numbers[i])
		}
	}
	return b.String()
}

// queue is what an outlet parks in.
func (p *parts) queue(q *jetqueue.Queue) fallback.Queue {
	if p.holds == nil {
		return q
	}
	return heldQueue{q, q, p.holds}
}

// leasesReady: a replica that takes part is ready, also while it has no
// partition.
func (s *service) leasesReady() admin.Check {
	c := admin.Check{Name: "leases", OK: true}
	switch v := s.keeper.View(); {
	case v.Self == "":
		c.OK, c.Reason = false, "not among the replicas yet"
	case !v.Valid:
		c.OK, c.Reason = false, "the leases could not be renewed in time: NATS does not answer, or the others have counted this replica as gone"
	}
	return c
}

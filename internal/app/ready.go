package app

import (
	"context"
	"fmt"
	"time"

	"github.com/tripline/tripline/internal/admin"
)

const (
	// stalledAfter is how old an unsettled trigger may be before progress
	// counts as stalled. A park that the server acknowledges settles one, so
	// even a consumer that is away for days doesn't get near it.
	stalledAfter = 30 * time.Second
	// unansweredAfter is how long JetStream may leave questions unanswered: a
	// connection that is up doesn't say that it has a leader.
	unansweredAfter = 3 * storeEvery
	// A stream this full is worth a warning, or reason not to be ready.
	nearlyFull, full = 0.80, 0.95
)

// ready lists what readiness depends on.
func (s *service) ready(context.Context) []admin.Check {
	if s.stopping.Load() {
		return []admin.Check{{Name: "running", Reason: "stopping"}}
	}
	if !s.running.Load() {
		return []admin.Check{{Name: "running", Reason: "starting"}}
	}
	checks := []admin.Check{s.partitionsReady(), s.natsReady(), s.progressReady(), s.readersReady()}
	if s.keeper != nil {
		checks = append(checks, s.leasesReady())
	}
	checks = append(checks, s.storesReady()...)
	return append(checks, s.consumersReady()...)
}

// partitionsReady: until a partition has loaded what was saved, its locations
// wait.
func (s *service) partitionsReady() admin.Check {
	c := admin.Check{Name: "running", OK: true}
	waiting := 0
	for _, p := range s.held.each() {
		if !p.Status().Started {
			waiting++
		}
	}
	if waiting > 0 {
		c.OK, c.Reason = false, fmt.Sprintf("starting: %d of %d partitions are not loaded yet", waiting, s.held.count())
	}
	return c
}

func (s *service) natsReady() admin.Check {
	c := admin.Check{Name: "nats", OK: true}
	refuse := func(format string, args ...any) admin.Check {
		c.OK, c.Reason = false, fmt.Sprintf(format, args...)
		return c
	}
	if !s.nats.store.IsConnected() || !s.nats.ingest.IsConnected() {
		return refuse("not connected to NATS; it is tried again and again")
	}
	if s.nats.embedded != nil {
		if err := s.nats.embedded.Healthy(); err != nil {
			return refuse("%s", s.sickServer(err))
		}
	}
	if measured := *s.gauges.measured.Load(); time.Since(measured) > unansweredAfter {
		return refuse("JetStream has not answered since %s: does it have a leader, and room on its disk?", measured.UTC().Format(time.RFC3339))
	}
	if !s.nats.out.IsConnected() {
		c.Reason = "the connection that delivers to NATS consumers is away; their triggers are parked"
	}
	return c
}

func (s *service) progressReady() admin.Check {
	c := admin.Check{Name: "progress", OK: true}
	for i, p := range s.held.each() {
		if lag := p.Status().Lag; lag > stalledAfter {
			c.OK = false
			c.Reason = fmt.Sprintf("partition %d has had a trigger unsettled for %v: look for a blocked fallback queue, or NATS that doesn't answer", i, lag.Round(time.Second))
			break
		}
	}
	return c
}

func (s *service) readersReady() admin.Check {
	c := admin.Check{Name: "reader", OK: true}
	if number, since, ok := s.gauges.readers.silent(time.Now()); ok {
		c.OK, c.Reason = false, fmt.Sprintf("partition %d has judged nothing for %v although something is stored for it: its reader is silent, or a queue that blocks holds it up", number, since.Round(time.Second))
	}
	return c
}

func (s *service) storesReady() []admin.Check {
	var checks []admin.Check
	for _, u := range *s.gauges.stores.Load() {
		c := admin.Check{Name: "store " + u.stream, OK: u.ratio() < full || !u.loses}
		if u.ratio() >= nearlyFull {
			c.Reason = fmt.Sprintf("%.0f %% of %d MiB used", 100*u.ratio(), u.max>>20)
			if u.fullIn > 0 {
				c.Reason += fmt.Sprintf("; full in about %v at this rate", u.fullIn.Round(time.Second))
			}
		}
		checks = append(checks, c)
	}
	return checks
}

func (s *service) consumersReady() []admin.Check {
	var checks []admin.Check
	for _, m := range s.roster.all() {
		c := admin.Check{Name: "consumer " + m.name, OK: true}
		switch status := m.outlet.Status(); {
		case status.Blocked && status.Full:
			c.OK, c.Reason = false, "its fallback queue is full and everything waits for it (on_full: block): bring the consumer back, or raise fallback.max_bytes"
		case status.Full && s.roster.blocks(m):
			c.OK, c.Reason = false, "its fallback queue is full, and everything will wait for it soon (on_full: block): bring the consumer back, or raise fallback.max_bytes"
		case status.Blocked:
			c.OK, c.Reason = false, "its fallback queue does not answer and everything waits for it"
		case status.DeadFull:
			c.OK, c.Reason = false, "the dead letters are full: what is to be given up on stays parked; redrive or purge dead letters"
		case status.Disabled:
			c.Reason = "it answered 410 Gone and is off until a reload"
		}
		checks = append(checks, c)
	}
	return checks
}

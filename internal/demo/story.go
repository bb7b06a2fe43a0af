package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/app"
)

const (
	reportEvery = 2 * time.Second
	// samples is how many triggers are shown one by one at the beginning.
	samples = 5
)

// story tells a person what happens, a line each.
type story struct {
	begin     time.Time
	consumers []*consumer
	unread    func() // nobody reads it any more

	mu       sync.Mutex // guards all below, and orders the lines
	out      io.Writer
	shown    int             // sample triggers
	diverted map[string]bool // since the consumer's last trip
	probes   map[string]int  // since the consumer's last half-open state
	trips    map[string]int
	closes   map[string]int
	replays  map[string]bool // since the consumer's last close
}

func newStory(out io.Writer, unread func(), consumers []*consumer) *story {
	return &story{
		begin: time.Now(), out: out, unread: unread, consumers: consumers,
		diverted: map[string]bool{}, probes: map[string]int{},
		trips: map[string]int{}, closes: map[string]int{}, replays: map[string]bool{},
	}
}

// say prints a line under the time since the beginning.
func (s *story) say(consumer, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(consumer, format, args...)
}

func (s *story) line(consumer, format string, args ...any) {
	_, err := fmt.Fprintf(s.out, "%6.1fs  %-9s  %s\n", time.Since(s.begin).Seconds(), consumer, fmt.Sprintf(format, args...))
	if err != nil {
		s.unread()
	}
}

func (s *story) intro(started app.Started, opts Options) {
	s.say("", "NATS with JetStream runs at %s, the live page at %s/", started.NATS, started.Admin)
	s.say("", "%d vehicles drive through a city of %d fences; three consumers take the triggers", vehicles, started.Fences)
	until := "until Ctrl-C"
	if opts.For > 0 {
		until = "for " + opts.For.String()
	}
	s.say("", "%s will fall sick at %v (answers take %v) and heal at %v; this runs %s", patient, sickFrom, sickDelay, sickUntil, until)
}

func (s *story) sick(delay time.Duration) {
	s.say(patient, "FALLS SICK: each answer takes %v now", delay)
}

func (s *story) healed() { s.say(patient, "HAS HEALED: it answers at once again") }

// observer is what the running service tells the story.
func (s *story) observer() app.Observer {
	return app.Observer{
		Transition: s.transition,
		Breaker:    s.breaker,
		Diverted:   s.divert,
		Delivered:  s.delivered,
	}
}

func (s *story) transition(tr *geofence.Transition, consumers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown >= samples || tr.Initial {
		return
	}
	s.shown++
	s.line("", "%s: %s %s, for %d consumers", tr.Device, tr.Kind, tr.Fence.ID, consumers)
}

func (s *story) breaker(consumer string, t breaker.Transition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t.To {
	case breaker.Open:
		if t.From == breaker.Closed {
			s.trips[consumer]++
			s.diverted[consumer] = false
			s.line(consumer, "TRIPS: %s; open for %.1f s", t.Text, t.Window.Seconds())
			return
		}
		s.line(consumer, "reopens: %s; open for %.1f s", t.Text, t.Window.Seconds())
	case breaker.HalfOpen:
		s.probes[consumer] = 0
		s.line(consumer, "half-open: %s; is it well again?", t.Text)
	case breaker.Closed:
		s.closes[consumer]++
		s.replays[consumer] = false
		s.line(consumer, "CLOSES: %s", t.Text)
	}
}

func (s *story) divert(consumer string, reason fallback.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.diverted[consumer] {
		s.diverted[consumer] = true
		s.line(consumer, "its triggers go to the durable fallback queue now (%s)", reason)
	}
}

func (s *story) delivered(consumer string, d fallback.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case d.Verdict == breaker.VerdictStale: // it came after the matter was decided
	case d.Probe:
		s.probes[consumer]++
		took := d.Latency.Round(time.Millisecond / 10)
		if d.Error != "" {
			s.line(consumer, "probe %d: %s after %v", s.probes[consumer], d.Outcome, took)
			return
		}
		s.line(consumer, "probe %d: %s, in %v", s.probes[consumer], d.Verdict, took)
	case d.Replayed && !s.replays[consumer] && s.closes[consumer] > 0:
		s.replays[consumer] = true
		s.line(consumer, "the replay of its backlog begins")
	}
}

// report prints every now and then how the consumers do.
func (s *story) report(ctx context.Context, status func() []live.Consumer) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	backlog := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var parts []string
		for _, c := range status() {
			part := fmt.Sprintf("%s %.0f/s", c.Name, c.DeliveredPerS)
			if c.State != breaker.Closed.String() {
				part += " " + c.State
			}
			if c.Backlog.Items > 0 {
				part += fmt.Sprintf(" (%d parked)", c.Backlog.Items)
			}
			if backlog[c.Name] && c.Backlog.Items == 0 && c.State == breaker.Closed.String() {
				s.say(c.Name, "its backlog is gone: every parked trigger has been replayed")
			}
			backlog[c.Name] = c.Backlog.Items > 0
			parts = append(parts, part)
		}
		s.say("", "%s", strings.Join(parts, "   "))
	}
}

// summary prints what came of it, and returns an error if anything was lost
// or out of order.
func (s *story) summary(fleet *driver, consumers []*consumer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\nsummary: %d locations in %v\n", fleet.fixes, time.Since(s.begin).Round(time.Second))
	var lost, wrong int
	for _, c := range consumers {
		t := c.tally()
		missing := c.missing(fleet.expected[c.name])
		unexpected := c.unexpected(fleet.allowed[c.name])
		lost += missing
		wrong += t.reordered + unexpected
		fmt.Fprintf(s.out, "  %-9s  %5d triggers  max_gap %.2fs  trips %d  closes %d  duplicates %d  reordered %d  unexpected %d\n",
			c.name, t.taken, t.maxGap.Seconds(), s.trips[c.name], s.closes[c.name], t.duplicates, t.reordered, unexpected)
	}
	fmt.Fprintf(s.out, "lost %d\n", lost)
	if lost+wrong > 0 {
		return errors.New("the demo went wrong: see its summary")
	}
	return nil
}

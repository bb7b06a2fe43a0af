package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// expectation is a trigger that has to be delivered.
type expectation struct {
	id, device, fence, what string
	at                      int64  // device time, unix milliseconds
	message                 string // id of the message that made it happen
	published               time.Duration
}

func (e *expectation) String() string {
	return fmt.Sprintf("%s: %s %s %s at %s, by message %s, published at %.1f s",
		e.id, e.device, e.what, e.fence, time.UnixMilli(e.at).UTC().Format(time.RFC3339), e.message, e.published.Seconds())
}

// wants says, in other words than the configuration, what a consumer is to
// get, so that one checks the other.
type wants func(*geofence.Transition) bool

// expectations are the triggers that each consumer has to get.
type expectations struct {
	wants map[string]wants // by consumer

	mu   sync.Mutex // guards sets
	sets map[string]map[string]*expectation
}

func newExpectations(w map[string]wants) *expectations {
	e := &expectations{wants: w, sets: map[string]map[string]*expectation{}}
	for consumer := range w {
		e.sets[consumer] = map[string]*expectation{}
	}
	return e
}

// add enters transitions for those who want them.
func (e *expectations) add(transitions []geofence.Transition, message string, published time.Duration) {
	if len(transitions) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range transitions {
		tr := &transitions[i]
		x := &expectation{
			id: router.TriggerID(tr), device: tr.Device, fence: tr.Fence.ID, what: tr.Kind.String(),
			at: tr.At, message: message, published: published,
		}
		for consumer, wanted := range e.wants {
			if wanted(tr) {
				e.sets[consumer][x.id] = x
			}
		}
	}
}

// of returns a copy of what the consumer has to get so far.
func (e *expectations) of(consumer string) map[string]*expectation {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make(map[string]*expectation, len(e.sets[consumer]))
	maps.Copy(out, e.sets[consumer])
	return out
}

// total is the number of deliveries that are due.
func (e *expectations) total() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, set := range e.sets {
		n += len(set)
	}
	return n
}

// oracle judges locations as the router has to. Each publisher has one, for
// the devices that are its own.
type oracle struct {
	tracker *geofence.Tracker
	into    *expectations
	scratch []geofence.Transition
}

func newOracle(into *expectations) (*oracle, error) {
	fences, err := geofence.ParseFences(cityFences())
	if err != nil {
		return nil, fmt.Errorf("reading the city: %w", err)
	}
	index, err := geofence.NewIndex(fences...)
	if err != nil {
		return nil, fmt.Errorf("indexing the city: %w", err)
	}
	return &oracle{tracker: geofence.NewTracker(index, geofence.Config{Cross: true}), into: into}, nil
}

func (o *oracle) judge(l location, published time.Duration) {
	if l.fix == nil {
		return
	}
	now := time.Now().UnixMilli()
	fix := *l.fix
	fix.Stored = now
	o.scratch, _ = o.tracker.Track(&fix, now, o.scratch[:0])
	o.into.add(o.scratch, l.id, published)
}

// finish adds what the clock alone makes happen in the next minute: the dwells
// of those in the garage.
func (o *oracle) finish(published time.Duration) {
	later := time.Now().Add(time.Minute).UnixMilli()
	o.into.add(o.tracker.Advance(later, o.scratch[:0]), "none, the clock fires it", published)
}

// downstream is a consumer of the run: how it is configured and, said again in
// Go, what it wants.
type downstream struct {
	name  string
	match string // YAML
	// concurrency is how many calls may be in flight; a reload changes it.
	concurrency int
	wants       wants
	calm        bool   // nothing ever happens to it
	kind        string // of its sink; "" is a webhook
	fallback    string // section of its configuration, YAML
	givesUp     bool   // its dead letters are sent again at the end
}

// downstreams are the consumers of a run.
func downstreams() []downstream {
	tagged := func(tag string) wants {
		return func(tr *geofence.Transition) bool { return slices.Contains(tr.Fence.Tags, tag) }
	}
	kind := func(tr *geofence.Transition, kinds ...geofence.Kind) bool { return slices.Contains(kinds, tr.Kind) }
	ordinary := func(tr *geofence.Transition) bool {
		return kind(tr, geofence.Enter, geofence.Exit, geofence.Dwell)
	}
	return []downstream{
		{name: "everything", match: `{transitions: [enter, exit, dwell, cross]}`,
			wants: func(*geofence.Transition) bool { return true }},
		{name: "hasty", match: `{transitions: [enter, exit, dwell]}`, wants: ordinary,
			fallback: `{max_attempts: 1}`, givesUp: true},
		{name: "asked", match: `{transitions: [enter, exit, dwell]}`, wants: ordinary, kind: request},
		{name: "archive", match: `{transitions: [enter, exit, dwell]}`, wants: ordinary, kind: stream, calm: true},
		{name: "calm", match: `{transitions: [enter, exit, dwell]}`, wants: ordinary, calm: true},
		{name: "arrivals", match: `{tags: [depot], transitions: [enter]}`, concurrency: 4,
			wants: func(tr *geofence.Transition) bool { return tagged("depot")(tr) && kind(tr, geofence.Enter) }},
		{name: "stays", match: `{transitions: [dwell]}`,
			wants: func(tr *geofence.Transition) bool { return kind(tr, geofence.Dwell) }},
		// Its queue is small enough to be full now and then.
		{name: "north", fallback: `{max_bytes: 256KiB}`, match: `{fences: ["zone-*-2", "reserve"], transitions: [exit, cross]}`, concurrency: 2,
			wants: func(tr *geofence.Transition) bool {
				return (strings.HasSuffix(tr.Fence.ID, "-2") && tagged("zone")(tr) || tr.Fence.ID == "reserve") &&
					kind(tr, geofence.Exit, geofence.Cross)
			}},
		{name: "fast", match: `{where: "fix.speed > 15", priority: high}`,
			wants: func(tr *geofence.Transition) bool { return ordinary(tr) && tr.Fix.Speed > 15 }},
		{name: "crews", match: `[{devices: ["crew-*"], tags: [depot], priority: high}, {devices: ["crew-*"], priority: low}]`,
			wants: func(tr *geofence.Transition) bool { return ordinary(tr) && strings.HasPrefix(tr.Device, "crew-") }},
	}
}

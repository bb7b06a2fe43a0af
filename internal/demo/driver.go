package demo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

const (
	stepEvery = 100 * time.Millisecond
	// steps is in how many steps the whole fleet has moved once: each vehicle
	// reports once a second.
	steps = 10
)

// driver publishes the fleet's positions, and works out, with a tracker of
// its own, which triggers each consumer has to get for them.
type driver struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	fleet   *Fleet
	tracker *geofence.Tracker
	// expected and allowed hold trigger ids by consumer. Allowed beyond the
	// expected is a dwell that comes due after the fleet has stopped, or too
	// close to its exit to be certain.
	expected, allowed map[string]map[string]struct{}
	fixes             int
	scratch           []geofence.Transition
}

func newDriver(url string, seed uint64, begin time.Time) (*driver, error) {
	nc, err := nats.Connect(url, nats.Name("tripline-demo-fleet"))
	if err != nil {
		return nil, fmt.Errorf("connecting the fleet to %s: %w", url, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("opening JetStream for the fleet: %w", err)
	}
	fences, err := geofence.ParseFences(Fences())
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("reading the city: %w", err)
	}
	index, err := geofence.NewIndex(fences...)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("indexing the city: %w", err)
	}
	return &driver{
		nc: nc, js: js,
		fleet:    NewFleet(seed, vehicles, begin.UnixMilli()),
		tracker:  geofence.NewTracker(index, geofence.Config{}),
		expected: map[string]map[string]struct{}{},
		allowed:  map[string]map[string]struct{}{},
	}, nil
}

func (d *driver) close() { d.nc.Close() }

// drive moves the fleet on until driving ends, and returns when every position
// is stored.
func (d *driver) drive(driving, running context.Context) error {
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	for step := 0; ; step++ {
		select {
		case <-ticker.C:
		case <-driving.Done():
			return d.finish(running)
		case <-running.Done():
			return fmt.Errorf("tripline stopped while the fleet was driving: %w", context.Cause(running))
		}
		now := time.Now().UnixMilli()
		for i := step % steps; i < d.fleet.Len(); i += steps {
			if err := d.publish(running, d.fleet.Step(i, now)); err != nil {
				return err
			}
		}
	}
}

func (d *driver) publish(ctx context.Context, fix geofence.Fix) error {
	payload := fmt.Appendf(nil, `{"lat":%.7f,"lon":%.7f,"ts":%d,"speed":%.1f}`, fix.Lat, fix.Lon, fix.TS, fix.Speed)
	// What the tracker judges is what was written, digit by digit.
	fix.Lat, _ = strconv.ParseFloat(fmt.Sprintf("%.7f", fix.Lat), 64)
	fix.Lon, _ = strconv.ParseFloat(fmt.Sprintf("%.7f", fix.Lon), 64)
	fix.Stored = fix.TS
	if _, err := d.js.PublishMsgAsync(&nats.Msg{Subject: "location." + fix.Device, Data: payload}); err != nil {
		return fmt.Errorf("publishing a location: %w", err)
	}
	d.fixes++
	d.scratch = d.tracker.Advance(fix.TS, d.scratch[:0])
	d.scratch, _ = d.tracker.Track(&fix, fix.TS, d.scratch)
	d.note(d.scratch)
	return ctx.Err()
}

// finish waits until the last positions are stored.
func (d *driver) finish(ctx context.Context) error {
	select {
	case <-d.js.PublishAsyncComplete():
	case <-time.After(drainLimit):
		return fmt.Errorf("%d locations were not acknowledged within %v", d.js.PublishAsyncPending(), drainLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	later := time.Now().Add(time.Hour).UnixMilli()
	transitions := d.tracker.Advance(later, nil)
	for i := range transitions {
		d.enter(&transitions[i], d.allowed)
	}
	return nil
}

// uncertain is how close to the end of its stay a dwell may or may not be told:
// whether its time had come is for the clock of the log to say, to which this
// vehicle's positions came a little later than they were made, and those of
// others perhaps sooner. On a busy machine that can be seconds.
const uncertain = 5 * time.Second

// note takes down what the transitions mean for the consumers.
func (d *driver) note(transitions []geofence.Transition) {
	for i := range transitions {
		tr := &transitions[i]
		d.enter(tr, d.expected)
		d.enter(tr, d.allowed)
		if tr.Kind != geofence.Exit || !slices.Contains(tr.Fence.Tags, "zone") {
			continue
		}
		dwell := *tr
		dwell.Kind, dwell.Dwell, dwell.At = geofence.Dwell, zoneDwell, tr.EnteredAt+zoneDwell.Milliseconds()
		if early := time.Duration(tr.At-dwell.At) * time.Millisecond; early.Abs() < uncertain {
			d.enter(&dwell, d.allowed)
			for _, ids := range d.expected {
				delete(ids, router.TriggerID(&dwell))
			}
		}
	}
}

// enter enters a transition into the sets of the consumers that want it.
func (d *driver) enter(tr *geofence.Transition, sets map[string]map[string]struct{}) {
	id := router.TriggerID(tr)
	for consumer, wants := range wanted {
		if !wants(tr) {
			continue
		}
		if sets[consumer] == nil {
			sets[consumer] = map[string]struct{}{}
		}
		sets[consumer][id] = struct{}{}
	}
}

// wanted says the same as the matches in the configuration, in other words, so
// that one checks the other.
var wanted = map[string]func(*geofence.Transition) bool{
	"dispatch":  func(tr *geofence.Transition) bool { return slices.Contains(tr.Fence.Tags, "depot") },
	"billing":   func(tr *geofence.Transition) bool { return slices.Contains(tr.Fence.Tags, "zone") },
	"analytics": func(*geofence.Transition) bool { return true },
}

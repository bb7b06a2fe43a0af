package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// Status is what an outlet looks like at a moment, for display and metrics.
type Status struct {
	Breaker breaker.Snapshot
	Now     time.Duration // the outlet's clock, for the breaker's times

	Lane        int // triggers that wait for their call
	LaneMax     int // as many as it holds now: fewer while the ramp is in force
	InFlight    int
	Concurrency int
	Waiting     int // triggers that wait in memory for their park

	Backlog      int    // parked, or on their way
	BacklogBytes uint64 // as the queue last knew
	BacklogMax   uint64 // 0: no bound
	Oldest       time.Time
	SlotsParking int

	Delivered  uint64        // since the start, replayed ones among them
	Replayed   uint64        // since the start
	ReplayRate float64       // per second, over the last 10 s
	ParkRate   float64       // per second, over the last 10 s
	ETA        time.Duration // until the backlog is gone at these rates; 0: not known
	FullIn     time.Duration // until the queue is full at these rates; 0: not known

	Disabled bool // the consumer answered 410
	Paused   bool // an operator paused the replay
	Blocked  bool // partitions wait because the queue is full or away
	Full     bool // the queue's last answer was that it is full
	DeadFull bool // so was the dead letters'
	Owned    int  // partitions

	Errors []LastError // the newest first
}

// LastError is a call that failed.
type LastError struct {
	At      time.Time
	Outcome Outcome
	Text    string // from the sink, which redacts it
	Trigger string // id
}

// errorsKept is how many errors Status shows.
const errorsKept = 16

// stats is what Status shows beyond the core's state.
type stats struct {
	blocked             int // offers that wait
	delivered, replayed uint64
	replays, parks      meter
	errors              [errorsKept]LastError
	errorCount          int
	oldest              time.Time // as the sweep last saw
}

// note counts a call.
func (s *stats) note(now time.Duration, t task, r result) {
	if r.ok {
		s.delivered++
		if t.e == nil {
			s.replayed++
			s.replays.add(now)
		}
		return
	}
	s.errors[s.errorCount%errorsKept] = LastError{
		At: time.Now(), Outcome: r.outcome, Text: r.text, Trigger: t.trigger().ID,
	}
	s.errorCount++
}

// meter counts what happens in each of the last ten seconds.
type meter struct {
	slices [10]int
	second int64
}

func (m *meter) turn(now time.Duration) {
	second := int64(now / time.Second)
	for range min(second-m.second, int64(len(m.slices))) {
		m.second++
		m.slices[m.second%int64(len(m.slices))] = 0
	}
	if m.second < second { // a longer pause: all slices are empty
		m.second = second
	}
}

func (m *meter) add(now time.Duration) {
	m.turn(now)
	m.slices[m.second%int64(len(m.slices))]++
}

func (m *meter) perSecond(now time.Duration) float64 {
	m.turn(now)
	sum := 0
	for _, n := range m.slices {
		sum += n
	}
	// The current second has only begun.
	covered := min(now, 9*time.Second+now%time.Second).Seconds()
	return float64(sum) / max(covered, 1)
}

// Status returns the state of things.
func (o *Outlet) Status() Status {
	now := o.Now()
	usage := o.queue.Usage()
	snapshot := o.breaker.Snapshot(now)
	o.mu.Lock()
	c := o.core
	s := Status{
		Breaker: snapshot, Now: now,
		Lane: c.lane, LaneMax: c.ramp.Lane(o.cfg.Lane), InFlight: c.inFlight,
		Concurrency: o.cfg.Concurrency, Waiting: c.outCount,
		Backlog: c.stored + c.outCount, BacklogBytes: usage.Bytes, BacklogMax: usage.MaxBytes,
		SlotsParking: c.parking,
		Delivered:    o.stats.delivered, Replayed: o.stats.replayed,
		ReplayRate: o.stats.replays.perSecond(now), ParkRate: o.stats.parks.perSecond(now),
		Disabled: c.disabled, Paused: c.paused, Full: c.full, DeadFull: c.deadFull,
		Blocked: o.stats.blocked > 0,
		Errors:  o.stats.newestErrors(),
	}
	if c.ramp.Active() {
		s.Breaker.RampWindow = c.ramp.Window()
	}
	for _, p := range c.partitions {
		if p != nil && p.owned {
			s.Owned++
		}
	}
	if s.Backlog > 0 {
		s.Oldest = o.stats.oldest
	}
	o.mu.Unlock()
	s.estimate(usage)
	return s
}

// estimate works out when the backlog is gone, or the queue full.
func (s *Status) estimate(u Usage) {
	shrinks := s.ReplayRate - s.ParkRate
	after := func(amount, rate float64) time.Duration {
		return time.Duration(min(amount/rate, 1e9) * float64(time.Second))
	}
	switch {
	case s.Backlog == 0 || u.Items == 0:
	case shrinks > 0:
		s.ETA = after(float64(s.Backlog), shrinks)
	case shrinks < 0 && u.MaxBytes > u.Bytes:
		each := float64(u.Bytes) / float64(u.Items)
		s.FullIn = after(float64(u.MaxBytes-u.Bytes), -shrinks*each)
	}
}

func (s *stats) newestErrors() []LastError {
	list := make([]LastError, 0, min(s.errorCount, errorsKept))
	for i := range cap(list) {
		list = append(list, s.errors[(s.errorCount-1-i)%errorsKept])
	}
	return list
}

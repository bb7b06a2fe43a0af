package breaker

import (
	"errors"
	"time"
)

// RampLane is how many triggers a lane should hold at most while a ramp is in
// force: what waits in memory there is not counted by the ramp.
const RampLane = 16

// RampConfig says how a ramp grows. Zero fields mean their defaults, except
// Max.
type RampConfig struct {
	// Start is the window that a ramp begins with: the probes that the
	// consumer has just served. 1 to Max, default 2.
	Start int
	// Max is the most calls in flight, the consumer's concurrency. 1 to
	// 100,000.
	Max int
	// P99 is the limit of the latency, as in [Config]. 1 ms to 10 min,
	// default 50 ms.
	P99 time.Duration
	// Ordinary, if it isn't nil, is asked at each tick what a call ordinarily
	// takes; 0 means that it isn't known. [Breaker.Ordinary] is made for it:
	// after an outage that nothing healthy preceded, it learns as the
	// consumer's caches fill.
	Ordinary func() time.Duration
	// Settle is how long the ramp must have held nobody back to end below
	// Max. 0 to 1 h, default 10 s; [None] for none.
	Settle time.Duration
}

// Validate returns nil, or the joined [*ConfigError]s of every field whose
// value is out of its range.
func (c RampConfig) Validate() error {
	c = c.withDefaults()
	var r ranges
	r.integer("concurrency", c.Max, 1, 100_000)
	r.integer("probes", c.Start, 1, max(c.Max, 1))
	r.duration("p99", c.P99, time.Millisecond, 10*time.Minute)
	r.duration("settle", c.Settle, 0, time.Hour)
	return errors.Join(r...)
}

func (c RampConfig) withDefaults() RampConfig {
	fill(&c.Start, min(2, max(c.Max, 1)))
	fill(&c.P99, 50*time.Millisecond)
	fill(&c.Settle, 10*time.Second)
	if c.Settle == None {
		c.Settle = 0
	}
	return c
}

// Source says what a call is made for.
type Source uint8

// The sources of calls.
const (
	Live    Source = iota // a trigger that has just happened
	Backlog               // one that was parked
)

// String returns "live" or "backlog".
func (s Source) String() string { return inWords(s, "live", "backlog") }

// Ramp is the window of calls in flight after a close. Every 250 ms it shrinks
// to 0.7 of itself if more than 5 % of the calls took longer than the guard,
// which lies half-way between what the consumer ordinarily takes and the
// limit, and at once when it is clear that they will have; it grows by one if
// no more than 1 % did and somebody was held back. So the load finds what the
// consumer can do before the breaker has to tell it.
//
// It is pure, as the breaker is: the caller passes the time, which must not
// fall. It must hear of every call, also while it is not in force. It is not
// safe for use by several goroutines at once: the lock that guards the
// caller's own queues guards it too.
type Ramp struct {
	cfg     RampConfig
	calls   flight
	active  bool
	window  int
	guard   time.Duration
	ends    time.Duration // of this tick
	judged  int           // calls that ended or passed the guard in this tick
	over    int           // of these, passed the guard
	last    int           // judged in the tick before
	shrunk  time.Duration // when the window last shrank
	held    bool          // somebody was held back in this tick
	heldAt  time.Duration // when somebody last was
	share   int           // calls since the backlog last had one, while both waited
	backlog bool          // something is parked, as Poll was told last
	newest  time.Duration
}

// Sharing between live calls and the backlog while both wait.
const backlogEvery = 10

// NewRamp returns a ramp that is not in force. It panics on a configuration
// that [RampConfig.Validate] refuses.
func NewRamp(c RampConfig) *Ramp {
	if err := c.Validate(); err != nil {
		panic("breaker.NewRamp: " + err.Error())
	}
	c = c.withDefaults()
	return &Ramp{cfg: c, calls: newFlight(min(c.Max, 64))}
}

// Begin puts the ramp in force after a close. ordinary is what a call
// ordinarily takes, see [Breaker.Ordinary].
func (r *Ramp) Begin(now, ordinary time.Duration) {
	r.setGuard(ordinary)
	r.active = true
	r.window = r.cfg.Start
	r.heldAt = now
	r.share = 0
	r.shrunk = past
	r.backlog = true
	r.tick(now, 0)
	// What has passed the guard before is no news of this ramp.
	for c := r.calls.oldest(); c != nil && now-c.begin > r.guard; c = r.calls.oldest() {
		r.calls.pass(r.calls.head)
	}
}

func (r *Ramp) setGuard(ordinary time.Duration) {
	r.guard = (min(max(ordinary, 0), r.cfg.P99) + r.cfg.P99) / 2
}

// Throttle takes note that the consumer answered a call by asking for fewer
// (429): that puts the ramp in force or, if it is already, counts as a call
// over the guard. Done of the call follows.
func (r *Ramp) Throttle(now time.Duration, rc RampCall, ordinary time.Duration) {
	if !r.active {
		r.Begin(now, ordinary)
		return
	}
	r.catchUp(now)
	if c := r.calls.get(rc); c != nil && !c.over {
		r.pass(rc.place)
	}
}

// End takes the ramp out of force: the breaker has tripped.
func (r *Ramp) End() { r.active = false }

// Active says whether the ramp is in force.
func (r *Ramp) Active() bool { return r.active }

// Window returns how many calls may be in flight: Max while the ramp is not
// in force.
func (r *Ramp) Window() int {
	if !r.active {
		return r.cfg.Max
	}
	return r.window
}

// InFlight returns how many calls are in flight.
func (r *Ramp) InFlight() int { return r.calls.length }

// Lane returns how many triggers the lane may hold: normal, or at most
// [RampLane] while the ramp is in force.
func (r *Ramp) Lane(normal int) int {
	if !r.active {
		return normal
	}
	return min(normal, RampLane)
}

// Next says whose turn it is, given who waits; false if nobody may begin. While
// both wait, at least every tenth call is the backlog's and the others are
// live: somebody waits for those. When it answers false with somebody
// waiting, ask again after a Done, or when Poll says so.
func (r *Ramp) Next(liveWaits, backlogWaits bool) (Source, bool) {
	if !liveWaits && !backlogWaits {
		return Live, false
	}
	if r.calls.length >= r.Window() {
		r.held = r.active
		return Live, false
	}
	if backlogWaits && (!liveWaits || r.share >= backlogEvery-1) {
		return Backlog, true
	}
	return Live, true
}

// RampCall is a call in flight, as the ramp knows it.
type RampCall struct {
	serial uint64
	place  int32
}

// Start takes note of a call that begins. bothWaited says whether the other
// source had something waiting as well.
func (r *Ramp) Start(now time.Duration, s Source, bothWaited bool) RampCall {
	switch {
	case s == Backlog || !bothWaited:
		r.share = 0
	default:
		r.share++
	}
	r.newest = max(r.newest, now)
	i := r.calls.add(r.newest)
	return RampCall{r.calls.serial, i}
}

// Done takes note of its end. A second Done of the same call does nothing.
func (r *Ramp) Done(now time.Duration, rc RampCall) {
	c := r.calls.get(rc)
	if c == nil {
		return
	}
	if r.active {
		r.catchUp(now)
		if !c.over && c.begin >= r.shrunk {
			r.judged++
		}
	}
	r.calls.remove(rc.place)
}

// Drop takes back a Start whose call was never made.
func (r *Ramp) Drop(rc RampCall) {
	if r.calls.get(rc) != nil {
		r.calls.remove(rc.place)
	}
}

// Poll judges what has happened by now and returns when to call it again, or
// [Never] while the ramp is not in force. backlog says whether anything is
// parked.
func (r *Ramp) Poll(now time.Duration, backlog bool) (next time.Duration) {
	r.backlog = backlog
	r.catchUp(now)
	if !r.active {
		return Never
	}
	next = r.ends
	if c := r.calls.oldest(); c != nil {
		next = min(next, c.begin+r.guard+1)
	}
	return next
}

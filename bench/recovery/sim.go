package main

import (
	"math/rand/v2"
	"time"

	"github.com/tripline/tripline/breaker"
)

// clientTimeout is what the client gives a call; p99 is its limit.
const (
	clientTimeout = 200 * time.Millisecond
	limit         = 50 * time.Millisecond
)

// call is a call in flight, at the client, at the consumer, or both.
type call struct {
	begin    time.Duration
	serial   uint32
	slot     int32
	source   breaker.Source
	waits    bool // the client does
	working  bool // the consumer does
	warms    bool // it will have warmed the cache
	served   bool // it holds one of the consumer's servers
	probe    bool // admitted while half-open
	closed   bool // admitted while closed
	ticket   ticket
	ramp     breaker.RampCall
	deadline bool // an event for the client's timeout is under way
}

// sim plays one policy against one consumer, in virtual time.
type sim struct {
	scenario *scenario
	now      time.Duration
	events   events
	calls    []call
	unused   []int32
	serial   uint32
	consumer consumer
	outlet   outlet
	policy   policy
	discipline
	ramp     *breaker.Ramp
	arrivals *rand.Rand
	checks   *rand.Rand
	inFlight int // calls of the client
	probes   int
	failures int32         // of probes
	capped   bool          // all probes are out, until one ends
	next     time.Duration // arrival
	pollAt   time.Duration
	tickAt   time.Duration
	passes   int  // of the health check, in a row
	checking bool // a health check is under way or due
	deciding time.Duration
	looked   time.Duration
	tally
}

// inFlight says of a transition that a call decided it which was still in
// flight: it began p99 before.
const inFlight = time.Duration(-1)

// never is later than any event.
const never = breaker.Never

// run plays until the backlog is gone and a while has passed, or the
// scenario's horizon, and returns what was seen.
func run(sc *scenario, d discipline, seed uint64, tr *trace) *tally {
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }
	heals := time.Duration(float64(sc.outage) * (1 + sc.vary*(2*stream(5).Float64()-1)))
	s := &sim{scenario: sc, discipline: d, arrivals: stream(1), checks: stream(3), pollAt: never, tickAt: never}
	s.consumer = consumer{consumerConfig: sc.consumer, s: s, rng: stream(2), heals: heals, crowded: -1}
	s.tally = tally{heals: heals, closedAt: -1, drainedAt: -1, trace: tr}
	s.policy = d.build(s, stream(4))
	if d.ramp {
		s.ramp = breaker.NewRamp(breaker.RampConfig{Max: sc.workers, P99: limit, Ordinary: s.policy.ordinary})
	}
	s.next = s.gap()
	for !s.over() {
		if len(s.events) == 0 || s.next < s.events[0].at {
			s.now = s.next
			s.arrive(int32(s.arrivals.IntN(slotCount)))
			s.next = s.gap()
			if tr == nil && s.known && s.policy.state() == breaker.Open && s.pollAt != never {
				// It is parked, and that is all; so are those that follow
				// before anything else happens.
				until := min(s.events[0].at, s.heals+s.scenario.horizon)
				for ; s.next < until; s.next = s.gap() {
					s.now = s.next
					s.outlet.park(int32(s.arrivals.IntN(slotCount)))
				}
				continue
			}
		} else {
			e := s.events.pop()
			s.now = e.at
			s.handle(e)
		}
		s.dispatch()
		s.arm()
		if tr != nil {
			tr.depth(s.now, s.outlet.parked)
		}
	}
	s.tally.end = s.now
	s.tally.fell = s.consumer.fellOver
	return &s.tally
}

// over says whether the run has shown what it can.
func (s *sim) over() bool {
	if s.now >= s.looked+100*time.Millisecond {
		s.looked = s.now
		if s.warm() {
			s.skip()
			return true
		}
	}
	if s.now > s.heals+s.scenario.horizon {
		return true
	}
	return !s.scenario.whole && s.drainedAt >= 0 && s.now > s.drainedAt+10*time.Second && s.now > s.heals+15*time.Second
}

// warm says that nothing can happen any more but that the backlog drains: the
// breaker is closed, the cache is full, every call takes the same, and nothing
// holds the workers back.
func (s *sim) warm() bool {
	c := &s.consumer
	return s.now > s.heals && s.policy.state() == breaker.Closed && s.trace == nil && !s.scenario.whole &&
		c.spread == 0 && c.lasting.share == 0 && len(c.queue) == 0 && !c.sick(s.now) &&
		c.longest(s.scenario.workers) <= limit &&
		float64(c.served) > sureWarm*c.warming && s.inFlight <= s.scenario.workers &&
		(s.ramp == nil || s.ramp.Window() == s.scenario.workers)
}

// sureWarm is how many times its warming a cache must have served for a miss
// to be out of the question: exp(-25) is 1 in 72,000,000,000.
const sureWarm = 25

// skip does the arithmetic instead of playing that.
func (s *sim) skip() {
	if s.drainedAt < 0 {
		left := float64(s.outlet.parked) / (s.scenario.capacity - s.scenario.live)
		s.drainedAt = s.now + time.Duration(left*float64(time.Second))
	}
	s.now = max(s.drainedAt, s.now)
}

func (s *sim) push(at time.Duration, k kind, id int32) { s.events.push(event{at: at, kind: k, id: id}) }

func (s *sim) gap() time.Duration {
	return s.now + time.Duration(s.arrivals.ExpFloat64()/s.scenario.live*float64(time.Second))
}

func (s *sim) handle(e event) {
	switch e.kind {
	case answer:
		s.answered(e.id)
	case deadline:
		if c := &s.calls[e.id]; c.serial == e.serial && c.waits {
			s.ended(e.id, false)
		}
	case fetched:
		s.consumer.fetched(s.now, e.id)
	case crowd:
		s.consumer.crowdLasts(s.now, e.id)
	case poll:
		if e.at == s.pollAt {
			s.pollAt = never
			s.poll()
		}
	case tick:
		if e.at == s.tickAt {
			s.tickAt = never
		}
	case retry:
		s.outlet.slots[e.id].delayed = false
		s.outlet.offer(e.id)
	case check:
		s.sendCheck()
	case checked:
		s.checkAnswered(e.id == 1)
	}
}

// arrive takes in a live trigger.
func (s *sim) arrive(i int32) {
	o := &s.outlet
	sl := &o.slots[i]
	bound := laneLimit
	if s.ramp != nil {
		bound = s.ramp.Lane(laneLimit)
	}
	state := s.policy.state()
	switch {
	case sl.parked > 0, // order
		state == breaker.Open && s.known,
		state == breaker.HalfOpen && s.chosen && o.parked > 0:
		o.park(i)
	case o.lane >= bound:
		o.parkSlot(i) // the older ones first
		o.park(i)
	default:
		o.lane++
		sl.waiting++
		o.offerLive(i)
	}
}

// dispatch starts what may start.
func (s *sim) dispatch() {
	o := &s.outlet
	for s.inFlight < s.scenario.workers {
		state := s.policy.state()
		if state == breaker.HalfOpen && s.chosen && o.parked > 0 {
			if s.capped || s.probes >= s.cap {
				return
			}
			i, ok := o.choose()
			if !ok {
				return
			}
			if !s.start(i, breaker.Backlog, false) {
				s.capped = true
				return
			}
			continue
		}
		if state == breaker.Open && s.known {
			return
		}
		live, backlog := o.liveWaits(), o.backlogWaits()
		source, ok := breaker.Live, live
		if s.ramp != nil {
			source, ok = s.ramp.Next(live, backlog)
		} else if !live {
			source, ok = breaker.Backlog, backlog
		}
		if !ok || !s.begin(source, live && backlog) {
			return
		}
	}
}

// begin starts the next call of a source. It returns false if nothing more
// can begin now.
func (s *sim) begin(source breaker.Source, both bool) bool {
	o := &s.outlet
	line := &o.backlog
	if source == breaker.Live {
		line = &o.live
	}
	i := line.items[line.head]
	if s.start(i, source, both) {
		return true
	}
	if source == breaker.Live { // refused: it is diverted
		o.parkSlot(i)
		return !s.chosen
	}
	return false
}

// start asks the policy for one call, and makes it.
func (s *sim) start(i int32, source breaker.Source, both bool) bool {
	state := s.policy.state()
	t, ok := s.policy.admit(s.now)
	if !ok {
		return false
	}
	if after := s.policy.state(); state == breaker.Open { // it ended just now
		state = after
	}
	sl := &s.outlet.slots[i]
	sl.busy = true
	if source == breaker.Live {
		sl.waiting--
		s.outlet.lane--
	}
	id := s.newCall()
	c := &s.calls[id]
	c.begin, c.slot, c.source, c.ticket = s.now, i, source, t
	c.waits, c.working = true, true
	c.probe, c.closed = state == breaker.HalfOpen, state == breaker.Closed
	s.inFlight++
	if c.probe {
		s.probes++
		s.mostProbes = max(s.mostProbes, s.probes)
	}
	if s.ramp != nil {
		c.ramp = s.ramp.Start(s.now, source, both)
	}
	s.consumer.accept(s.now, id)
	if c := &s.calls[id]; !c.deadline {
		c.deadline = true
		s.events.push(event{at: s.now + clientTimeout, kind: deadline, id: id, serial: c.serial})
	}
	return true
}

func (s *sim) newCall() int32 {
	s.serial++
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.calls[id] = call{serial: s.serial}
		return id
	}
	s.calls = append(s.calls, call{serial: s.serial})
	return int32(len(s.calls) - 1)
}

// answers says when the consumer answers a call. If that is known at once and
// in time, the client needs no timeout.
func (s *sim) answers(at time.Duration, id int32) {
	c := &s.calls[id]
	if at < c.begin+clientTimeout {
		c.deadline = true
	}
	s.events.push(event{at: at, kind: answer, id: id, serial: c.serial})
}

// answered takes the consumer's answer to a call.
func (s *sim) answered(id int32) {
	s.consumer.answered(s.now, id)
	c := &s.calls[id]
	c.working = false
	if c.waits {
		s.ended(id, true)
		return
	}
	s.unused = append(s.unused, id)
}

// ended takes the outcome of a call.
func (s *sim) ended(id int32, ok bool) {
	c := &s.calls[id]
	c.waits = false
	s.capped = false
	s.inFlight--
	latency := s.now - c.begin
	if c.probe {
		s.probes--
	}
	s.tally.call(c.begin, s.now, ok)
	if s.ramp != nil {
		s.ramp.Done(s.now, c.ramp)
	}
	s.deciding = c.begin
	s.policy.report(s.now, c.ticket, ok, latency)
	s.settle(c, ok)
	if !c.working {
		s.unused = append(s.unused, id)
	}
}

// settle gives the slot of a call back.
func (s *sim) settle(c *call, ok bool) {
	o, i := &s.outlet, c.slot
	sl := &o.slots[i]
	sl.busy = false
	switch {
	case ok && c.source == breaker.Backlog:
		o.unpark(i)
		if o.parked == 0 && s.now >= s.heals && s.closedAt >= 0 && s.drainedAt < 0 {
			s.drainedAt = s.now
		}
	case ok:
	default:
		if c.source == breaker.Live {
			o.park(i)
			o.parkSlot(i)
		}
		if c.closed {
			sl.attempts++
			sl.delayed = true
			s.push(s.now+retryDelay(sl.attempts), retry, i)
		} else {
			s.failures++
			sl.failed = s.failures
		}
	}
	o.offer(i)
	o.offerLive(i)
}

package main

import (
	"math/rand/v2"
	"time"

	"github.com/tripline/tripline/breaker"
)

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
	traffic  traffic
	checks   *rand.Rand
	inFlight int // calls of the client
	probes   int
	failures int32 // of probes
	capped   bool  // all probes are out, until one ends
	pollAt   time.Duration
	tickAt   time.Duration
	passes   int  // of the health check, in a row
	checking bool // a health check is under way or due
	deciding time.Duration
	looked   time.Duration
	// The live run plays the two sides apart, each in real time: send makes a
	// real call in place of the consumer's model, replied is told what the
	// model has answered. Both are nil in virtual time.
	send, replied func(id int32)
	tally
}

// inFlight says of a transition that a call decided it which was still in
// flight: it began p99 before.
const inFlight = time.Duration(-1)

// never is later than any event.
const never = breaker.Never

// run plays until the backlog is gone and a while has passed, or the
// scenario's horizon, and returns what was seen.
func run(sc *scenario, d discipline, seed uint64, a *arrivals, tr *trace) *tally {
	heals := time.Duration(float64(sc.outage) * (1 + sc.vary*(2*stream(seed, 5).Float64()-1)))
	s := &sim{
		scenario: sc, discipline: d, traffic: newTraffic(a, sc.live), checks: stream(seed, 3),
		pollAt: never, tickAt: never,
	}
	s.consumer = consumer{consumerConfig: sc.consumer, s: s, rng: stream(seed, 2), heals: heals, crowded: -1}
	s.tally = tally{heals: heals, closedAt: -1, drainedAt: -1, trace: tr}
	s.policy = d.build(s, stream(seed, 4))
	if d.ramp {
		s.ramp = breaker.NewRamp(breaker.RampConfig{Max: sc.workers, P99: limit, Ordinary: s.policy.ordinary})
	}
	for !s.over() {
		s.step()
	}
	s.tally.end = s.now
	s.tally.fell = s.consumer.fellOver
	return s.tally.finish()
}

// step plays whatever comes next: an arrival, or something else.
func (s *sim) step() {
	if len(s.events) > 0 && s.events[0].at <= s.traffic.next {
		e := s.events.pop()
		s.now = e.at
		s.handle(e)
	} else {
		s.now = s.traffic.next
		s.arrive(s.traffic.slot)
		s.traffic.advance()
		if s.trace == nil && s.known && s.policy.state() == breaker.Open && s.pollAt != never {
			s.parkOn()
			return
		}
	}
	s.dispatch()
	s.arm()
	if s.trace != nil {
		s.trace.depth(s.now, s.outlet.parked)
	}
}

// parkOn parks what arrives before anything else happens: while the breaker
// is open that is all there is to do.
func (s *sim) parkOn() {
	until := min(s.events[0].at, s.heals+s.scenario.horizon)
	for ; s.traffic.next < until; s.traffic.advance() {
		s.now = s.traffic.next
		s.outlet.park(s.traffic.slot)
	}
}

func (s *sim) push(at time.Duration, k kind, id int32) { s.events.push(event{at: at, kind: k, id: id}) }

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

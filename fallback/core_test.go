package fallback

import (
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// newTestCore returns a core that owns partition 0, whose table is given.
func newTestCore(cfg Config, table map[Slot]int) *core {
	cfg = cfg.withDefaults()
	c := newCore(&cfg, breaker.NewRamp(breaker.RampConfig{Max: cfg.Concurrency}), func() time.Duration { return 0 })
	c.owned(0, 0, table)
	return c
}

func testEntry(id string, slot int) *entry {
	return &entry{trigger: router.Trigger{ID: id, Slot: slot}, size: 100}
}

func testItem(id string, slot int, seq uint64) *Item {
	return &Item{Trigger: router.Trigger{ID: id, Slot: slot}, Seq: seq}
}

// The queue's "there is none" covers what was durable when it was asked, not
// what was acknowledged while it answered.
func TestAnEmptyAnswerDoesNotCoverLaterParks(t *testing.T) {
	c := newTestCore(Config{}, map[Slot]int{{0, 7}: 1}) // one that is not there: a count too high
	question := c.next(0)
	if question.kind != load {
		t.Fatalf("first task: %v", question.kind)
	}
	c.offer(0, testEntry("b", 7))
	c.parked(0, c.out.parks[0], nil)
	c.fetched(0, question, nil, 0, nil) // asked before b was durable
	s := c.slot(Slot{0, 7})
	if s.state != parking || s.stored != 1 {
		t.Fatalf("the slot is %d with %d stored: b would be overtaken", s.state, s.stored)
	}
	question = c.next(0)
	c.fetched(0, question, nil, 0, nil) // asked after that: b is gone
	if c.parking != 0 || c.stored != 0 {
		t.Errorf("%d slots parking, %d stored", c.parking, c.stored)
	}
}

// A refusal at the probe cap that is told after the probe has ended must not
// leave everybody waiting for that probe.
func TestALateRefusalAtTheCapIsNoReasonToWait(t *testing.T) {
	c := newTestCore(Config{Concurrency: 4}, map[Slot]int{{0, 1}: 1, {0, 2}: 1, {0, 3}: 1})
	c.observe(0, breaker.Open)
	var loads, probes []task
	for range 3 {
		loads = append(loads, c.next(0))
	}
	for i, l := range loads {
		c.fetched(0, l, testItem(string(rune('a'+i)), l.s.id.Index, uint64(i+1)), 0, nil)
	}
	c.observe(0, breaker.HalfOpen)
	for i := range 2 {
		probes = append(probes, c.next(0))
		if again := c.next(0); again.kind == call {
			t.Fatal("a probe is given out while the breaker is asked for another")
		}
		if i == 0 {
			c.answered(&probes[0])
		}
	}
	if probes[0].kind != call || probes[1].kind != call {
		t.Fatalf("no probes: %v %v", probes[0].kind, probes[1].kind)
	}
	// The first is admitted and ends; then the second, which was refused
	// meanwhile, gets to tell it.
	c.called(0, probes[0], result{ok: true, probe: true})
	c.refused(0, probes[1], ReasonProbeCap)
	if again := c.next(0); again.kind != call {
		t.Errorf("everybody waits, with no probe out")
	}

	c = newTestCore(Config{Concurrency: 4}, map[Slot]int{{0, 1}: 1})
	c.observe(0, breaker.Open)
	l := c.next(0)
	c.fetched(0, l, testItem("a", 1, 1), 0, nil)
	c.observe(0, breaker.HalfOpen)
	c.refused(0, c.next(0), ReasonProbeCap)
	if again := c.next(0); again.kind == call {
		t.Error("it asks again, with the probe still out")
	}
	c.poll(time.Second)
	if again := c.next(time.Second); again.kind != call {
		t.Error("it waits for ever for a probe whose lease has ended")
	}
}

// A failed live trigger takes its delay with it into the queue.
func TestAFailedLiveTriggerWaitsInTheQueue(t *testing.T) {
	c := newTestCore(Config{}, nil)
	c.offer(0, testEntry("a", 7))
	c.called(0, c.next(0), result{cause: router.Failed})
	c.parked(0, c.out.parks[0], nil)
	if got := c.next(999 * time.Millisecond); got.kind != idle {
		t.Errorf("task %v before its second is over", got.kind)
	}
	if at := c.poll(999 * time.Millisecond); at != time.Second {
		t.Errorf("to be polled at %v, want 1s", at)
	}
	c.poll(time.Second)
	if got := c.next(time.Second); got.kind != load {
		t.Errorf("task %v after its second", got.kind)
	}
}

func TestOnlyTheNewestWakeOfASlotCounts(t *testing.T) {
	var w wakes
	a, b := &slot{}, &slot{}
	w.set(a, wakeTurn, 5)
	w.set(b, wakeTurn, 7)
	w.set(a, wakePark, 6)
	w.set(a, wakeTurn, 9)
	if at := w.next(); at != 6 {
		t.Errorf("next at %d, want 6", at)
	}
	var got []time.Duration
	for {
		k, ok := w.due(8)
		if !ok {
			break
		}
		got = append(got, k.at)
	}
	if len(got) != 2 || got[0] != 6 || got[1] != 7 {
		t.Errorf("due: %v, want 6 and 7", got)
	}
	a.reset()
	if at := w.next(); at != breaker.Never {
		t.Errorf("next at %v after the slot was emptied", at)
	}
}

func TestBucketHoldsTheRateAndSavesUpLittle(t *testing.T) {
	b := newBucket(100)
	taken := 0
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		for b.take(now) {
			taken++
		}
		if at := b.next(now); at <= now || at > now+10*time.Millisecond+1 {
			t.Fatalf("at %v it is to be asked again at %v", now, at)
		}
	}
	if taken < 1000 || taken > 1010 {
		t.Errorf("%d in 10 s, want 1000 and at most the 10 saved up", taken)
	}
	b.next(time.Hour)
	if at := b.next(time.Hour); at != breaker.Never {
		t.Errorf("it wants to be asked at %v, though it was told that it may", at)
	}
	free := newBucket(0)
	for range 1000 {
		if !free.take(0) {
			t.Fatal("no rate, and yet a bound")
		}
	}
}

func TestMeterForgetsAfterTenSeconds(t *testing.T) {
	var m meter
	for now := time.Duration(0); now < 30*time.Second; now += 10 * time.Millisecond {
		m.add(now)
	}
	if r := m.perSecond(30 * time.Second); r < 95 || r > 105 {
		t.Errorf("%v per second, want 100", r)
	}
	if r := m.perSecond(45 * time.Second); r != 0 {
		t.Errorf("%v per second, 15 s later", r)
	}
	m.add(time.Hour)
	if r := m.perSecond(time.Hour); r <= 0 || r > 1 {
		t.Errorf("%v per second after a long pause", r)
	}
}

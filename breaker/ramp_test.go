package breaker_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tripline/tripline/breaker"
)

// rampRig drives a ramp in virtual time with calls of one latency.
type rampRig struct {
	t   *testing.T
	r   *breaker.Ramp
	now time.Duration
	out []rampCall
}

type rampCall struct {
	c    breaker.RampCall
	ends time.Duration
}

func newRampRig(t *testing.T, c breaker.RampConfig) *rampRig {
	return &rampRig{t: t, r: breaker.NewRamp(c)}
}

// run keeps the window full of calls of that latency for a while.
func (rr *rampRig) run(d, latency time.Duration, backlog bool) {
	for end := rr.now + d; rr.now < end; rr.now += ms {
		for len(rr.out) > 0 && rr.out[0].ends <= rr.now {
			rr.r.Done(rr.now, rr.out[0].c)
			rr.out = rr.out[1:]
		}
		rr.r.Poll(rr.now, backlog)
		for {
			s, ok := rr.r.Next(true, backlog)
			if !ok {
				break
			}
			rr.out = append(rr.out, rampCall{rr.r.Start(rr.now, s, backlog), rr.now + latency})
		}
		if rr.r.InFlight() > rr.r.Window() && latency < ms {
			rr.t.Fatalf("%d in flight in a window of %d", rr.r.InFlight(), rr.r.Window())
		}
	}
}

func TestRampGrowsWhileSomebodyWaits(t *testing.T) {
	rr := newRampRig(t, breaker.RampConfig{Max: 16})
	equal(t, "before", rr.r.Window(), 16)
	equal(t, "in force before", rr.r.Active(), false)
	equal(t, "next before", rr.r.Poll(0, true), breaker.Never)
	equal(t, "lane before", rr.r.Lane(1024), 1024)
	rr.r.Begin(0, 5*ms)
	equal(t, "lane", rr.r.Lane(1024), 16)
	equal(t, "next", rr.r.Poll(0, true), 250*ms)
	rr.run(ms, 5*ms, true)
	for want := 2; want <= 16; want++ {
		equal(t, "window", rr.r.Window(), want)
		rr.run(250*ms, 5*ms, true)
	}
	rr.run(sec, 5*ms, true)
	equal(t, "window at the top", rr.r.Window(), 16)
	equal(t, "in force while there is a backlog", rr.r.Active(), true)
	rr.run(251*ms, 5*ms, false)
	equal(t, "in force after", rr.r.Active(), false)
}

func TestRampIdleStaysSmall(t *testing.T) {
	rr := newRampRig(t, breaker.RampConfig{Max: 16})
	rr.r.Begin(0, 0)
	rr.r.Poll(9999*ms, false)
	equal(t, "in force", rr.r.Active(), true)
	equal(t, "window of which nobody wants more", rr.r.Window(), 2)
	rr.r.Poll(10*sec, false)
	equal(t, "in force when it held nobody back for settle", rr.r.Active(), false)
	rr.r.Begin(20*sec, 0)
	equal(t, "with a backlog", rr.r.Poll(time.Hour, true) > time.Hour, true)
	equal(t, "in force", rr.r.Active(), true)
}

func TestRampShrinks(t *testing.T) {
	rr := newRampRig(t, breaker.RampConfig{Max: 16})
	rr.r.Begin(0, 10*ms) // guard: 30 ms
	rr.run(3*sec+ms, 30*ms, true)
	equal(t, "window with calls at the guard", rr.r.Window(), 14)
	rr.run(250*ms, 40*ms, true)
	rr.run(250*ms, 40*ms, true)
	if w := rr.r.Window(); w > 9 {
		t.Errorf("window %d after half a second of slow calls", w)
	}
	rr.run(5*sec, 40*ms, true)
	equal(t, "never below one", rr.r.Window(), 1)
}

// TestRampSeesHungCalls: calls in flight count when they pass the guard, once.
func TestRampSeesHungCalls(t *testing.T) {
	r := breaker.NewRamp(breaker.RampConfig{Max: 16, Start: 10})
	r.Begin(0, 10*ms)
	var out []breaker.RampCall
	for range 10 {
		out = append(out, r.Start(0, breaker.Backlog, false))
	}
	r.Poll(250*ms, true)
	equal(t, "after the tick in which they hang", r.Window(), 7)
	for _, c := range out {
		r.Done(260*ms, c)
		r.Done(260*ms, c)
	}
	equal(t, "in flight", r.InFlight(), 0)
	r.Poll(500*ms, true)
	equal(t, "their ends count no more", r.Window(), 7)
}

// TestRampShrinksAtOnce: as soon as more than 5 % of a tick's calls, by the
// number of the last, are sure to pass the guard; and once, not once for each
// of the calls that were in flight.
func TestRampShrinksAtOnce(t *testing.T) {
	r := breaker.NewRamp(breaker.RampConfig{Max: 100, Start: 20})
	r.Begin(0, 10*ms) // guard: 30 ms
	for i := range 100 {
		r.Done(time.Duration(i)*ms, r.Start(time.Duration(i)*ms, breaker.Live, false))
	}
	r.Poll(250*ms, true)
	equal(t, "window", r.Window(), 20)
	for range 20 {
		r.Start(251*ms, breaker.Backlog, false)
	}
	equal(t, "the guard is the next thing to happen", r.Poll(260*ms, true), 281*ms+1)
	r.Poll(281*ms, true)
	equal(t, "before the guard", r.Window(), 20)
	equal(t, "a new tick has begun", r.Poll(281*ms+1, true), 531*ms+1)
	equal(t, "after it", r.Window(), 14)
	r.Poll(531*ms+1, true)
	equal(t, "a tick in which nothing more happens", r.Window(), 14)
}

// TestRampHolds: between 1 and 5 % over the guard it neither grows nor
// shrinks.
func TestRampHolds(t *testing.T) {
	for _, test := range []struct{ over, want int }{{0, 11}, {1, 11}, {2, 10}, {5, 10}, {6, 7}} {
		r := breaker.NewRamp(breaker.RampConfig{Max: 16, Start: 10})
		r.Begin(0, 10*ms)
		var slow []breaker.RampCall
		for range test.over {
			slow = append(slow, r.Start(0, breaker.Live, false))
		}
		for range 100 - test.over {
			r.Done(ms, r.Start(0, breaker.Live, false))
		}
		for r.InFlight() < 10 {
			r.Start(249*ms, breaker.Live, false)
		}
		if _, ok := r.Next(true, true); ok {
			t.Error("the window is full, but there is a turn")
		}
		for _, c := range slow {
			r.Done(249*ms, c)
		}
		r.Poll(250*ms, true)
		if got := r.Window(); got != test.want {
			t.Errorf("%d of 100 over the guard: window %d, want %d", test.over, got, test.want)
		}
	}
}

// TestRampLearns: the guard follows what the consumer shows it can do.
func TestRampLearns(t *testing.T) {
	ordinary := 30 * ms
	r := breaker.NewRamp(breaker.RampConfig{Max: 16, Ordinary: func() time.Duration { return ordinary }})
	r.Begin(0, ordinary)
	r.Start(0, breaker.Live, false)
	equal(t, "guard of 40 ms", r.Poll(0, true), 40*ms+1)
	ordinary = 10 * ms
	r.Poll(250*ms, true)
	r.Start(250*ms, breaker.Live, false)
	equal(t, "guard of 30 ms", r.Poll(250*ms, true), 280*ms+1)
	ordinary = 0 // not known: the last one stays
	r.Poll(500*ms, true)
	r.Start(500*ms, breaker.Live, false)
	equal(t, "guard of 30 ms still", r.Poll(500*ms, true), 530*ms+1)
}

func TestRampDrop(t *testing.T) {
	r := breaker.NewRamp(breaker.RampConfig{Max: 16})
	r.Begin(0, 0)
	c := r.Start(0, breaker.Backlog, false)
	r.Drop(c)
	r.Drop(c)
	r.Drop(breaker.RampCall{})
	equal(t, "in flight", r.InFlight(), 0)
}

func TestRampThrottle(t *testing.T) {
	r := breaker.NewRamp(breaker.RampConfig{Max: 16})
	call := func(now time.Duration, throttled bool) {
		c := r.Start(now, breaker.Live, false)
		if throttled {
			r.Throttle(now, c, 5*ms)
		}
		r.Done(now, c)
	}
	call(0, true)
	equal(t, "in force after a 429", r.Active(), true)
	equal(t, "window", r.Window(), 2)
	for i := range 40 {
		call(time.Duration(i)*ms, i == 30)
	}
	r.Poll(250*ms, false)
	equal(t, "one of forty", r.Window(), 2)
	for i := range 40 {
		call(250*ms+time.Duration(i)*ms, i > 30)
	}
	r.Poll(500*ms, false)
	equal(t, "nine of forty", r.Window(), 1)
	r.End()
	equal(t, "after a trip", r.Active(), false)
}

// TestRampShares: while both wait every tenth call is the backlog's.
func TestRampShares(t *testing.T) {
	r := breaker.NewRamp(breaker.RampConfig{Max: 16})
	r.Begin(0, 0)
	got := map[breaker.Source]int{}
	for range 1000 {
		s, ok := r.Next(true, true)
		if !ok {
			t.Fatal("held back with nothing in flight")
		}
		got[s]++
		r.Done(0, r.Start(0, s, true))
	}
	equal(t, "backlog", got[breaker.Backlog], 100)
	for _, alone := range []breaker.Source{breaker.Live, breaker.Backlog} {
		s, _ := r.Next(alone == breaker.Live, alone == breaker.Backlog)
		equal(t, "alone", s, alone)
	}
	if _, ok := r.Next(false, false); ok {
		t.Error("a turn for nobody")
	}
}

func TestRampConfig(t *testing.T) {
	for _, c := range []breaker.RampConfig{{}, {Max: 4, Start: 5}, {Max: 4, P99: ms / 2}, {Max: 4, Settle: -5}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewRamp(%+v) did not panic", c)
				}
			}()
			breaker.NewRamp(c)
		}()
	}
}

// TestRampRandom holds what must hold whatever happens.
func TestRampRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "max")
		r := breaker.NewRamp(breaker.RampConfig{Max: most, Start: rapid.IntRange(1, most).Draw(t, "start")})
		now := time.Duration(0)
		var out []breaker.RampCall
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				r.Begin(now, rapid.SampledFrom([]time.Duration{0, 5 * ms, sec}).Draw(t, "ordinary"))
			case 1, 2:
				if s, ok := r.Next(true, true); ok {
					if r.InFlight() >= r.Window() {
						t.Fatalf("a turn with %d in flight in a window of %d", r.InFlight(), r.Window())
					}
					out = append(out, r.Start(now, s, true))
				} else if r.InFlight() < r.Window() {
					t.Fatal("no turn, with room")
				}
			case 3:
				if len(out) > 0 {
					r.Done(now, out[0])
					out = out[1:]
				}
			case 4:
				if len(out) > 0 {
					r.Throttle(now, out[0], 5*ms)
				}
			case 5:
				now += time.Duration(rapid.IntRange(1, 300).Draw(t, "ms")) * ms
			case 6:
				now = max(now, min(now+sec, r.Poll(now, rapid.Bool().Draw(t, "backlog"))))
				if r.Active() && r.Poll(now, true) <= now {
					t.Fatal("Poll wants to be called at once again")
				}
			}
			if w := r.Window(); w < 1 || w > most {
				t.Fatalf("window %d, at most %d", w, most)
			}
			if r.InFlight() != len(out) {
				t.Fatalf("%d in flight, want %d", r.InFlight(), len(out))
			}
		}
	})
}

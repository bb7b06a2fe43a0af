package main

import (
	"sync/atomic"
	"testing"
	"time"
)

// The judge itself is judged: each offence is seen, and what is none is not.
func TestConsumerTellsOffencesFromWhatIsAllowed(t *testing.T) {
	steps := func(d ...delivery) []delivery { return d }
	came := func(id, device, sequence string) delivery {
		return delivery{ID: id, Subject: device, Sequence: sequence}
	}
	for _, tc := range []struct {
		name                               string
		got                                []delivery
		reordered, resequenced, duplicates int
		unexpected, missing                int
	}{
		{"all in order", steps(came("a", "van", "01"), came("b", "van", "02"), came("c", "bus", "01")), 0, 0, 0, 0, 0},
		{"another device may be behind", steps(came("c", "bus", "09"), came("a", "van", "01"), came("b", "van", "02")), 0, 0, 0, 0, 0},
		{"a late repeat", steps(came("a", "van", "01"), came("b", "van", "02"), came("a", "van", "01"), came("c", "bus", "01")), 0, 0, 1, 0, 0},
		{"a new one behind a later one", steps(came("b", "van", "02"), came("a", "van", "01"), came("c", "bus", "01")), 1, 0, 0, 0, 0},
		{"two with one sequence", steps(came("a", "van", "01"), came("b", "van", "01"), came("c", "bus", "01")), 1, 0, 0, 0, 0},
		{"a repeat with another sequence", steps(came("a", "van", "01"), came("a", "van", "03"), came("b", "van", "04"), came("c", "bus", "01")), 0, 1, 1, 0, 0},
		{"one is missing", steps(came("a", "van", "01"), came("c", "bus", "01")), 0, 0, 0, 0, 1},
		{"one that nobody expected", steps(came("a", "van", "01"), came("b", "van", "02"), came("x", "van", "03"), came("c", "bus", "01")), 0, 0, 0, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &consumer{
				downstream: downstream{name: "test"}, since: func() time.Duration { return 0 },
				again: new(atomic.Uint64), taken: map[string]*taken{}, highest: map[string]newest{},
			}
			for _, d := range tc.got {
				c.take(d)
			}
			expected := map[string]*expectation{"a": {id: "a"}, "b": {id: "b"}, "c": {id: "c"}}
			if n := len(c.reordered); n != tc.reordered {
				t.Errorf("%d reordered, want %d", n, tc.reordered)
			}
			if n := len(c.resequenced); n != tc.resequenced {
				t.Errorf("%d resequenced, want %d", n, tc.resequenced)
			}
			if c.duplicates != tc.duplicates {
				t.Errorf("%d duplicates, want %d", c.duplicates, tc.duplicates)
			}
			if n := len(c.unexpected(expected)); n != tc.unexpected {
				t.Errorf("%d unexpected, want %d", n, tc.unexpected)
			}
			if n := len(c.missing(expected)); n != tc.missing {
				t.Errorf("%d missing, want %d", n, tc.missing)
			}
		})
	}
}

// The same seed makes the same journeys, and these make every kind of
// transition that the consumers want.
func TestJourneysAreRepeatableAndMakeWorkForEveryConsumer(t *testing.T) {
	checks := map[string]wants{}
	for _, d := range downstreams() {
		checks[d.name] = d.wants
	}
	drive := func() *expectations {
		e := newExpectations(checks)
		o, err := newOracle(e)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			j := newJourney(7, n)
			for range 100 {
				for _, l := range j.next() {
					o.judge(l, 0)
				}
			}
		}
		o.finish(0)
		return e
	}
	one, two := drive(), drive()
	for _, d := range downstreams() {
		a, b := one.of(d.name), two.of(d.name)
		if len(a) < 20 || len(a) != len(b) {
			t.Errorf("%s: %d and %d triggers", d.name, len(a), len(b))
		}
		for id := range a {
			if b[id] == nil {
				t.Errorf("%s: %v came only once", d.name, a[id])
				break
			}
		}
	}
	kinds := map[string]int{}
	for _, x := range one.of("everything") {
		kinds[x.what+" "+x.fence[:4]]++
	}
	for _, kind := range []string{"enter zone", "exit depo", "dwell zone", "cross zone", "dwell gara", "cross depo"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
}

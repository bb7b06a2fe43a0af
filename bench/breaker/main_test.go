package main

import (
	"flag"
	"strings"
	"testing"
)

// TestContenders runs every operation of every contender once: each does what
// the table says it does.
func TestContenders(t *testing.T) {
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		t.Fatal(err)
	}
	all := contenders()
	for _, c := range all {
		for op, bench := range c.bench {
			if bench == nil {
				continue
			}
			if testing.Benchmark(bench).N == 0 {
				t.Errorf("%s: operation %d failed", c.name, op)
			}
			c.figures[op] = figure{ns: float64(op + 1)}
		}
	}
	var out strings.Builder
	table(&out, all)
	for _, c := range all {
		if !strings.Contains(out.String(), c.name) {
			t.Errorf("%s is missing in\n%s", c.name, out.String())
		}
	}
}

func TestTargets(t *testing.T) {
	all := contenders()
	set := func(name string, op int, ns float64) {
		for _, c := range all {
			if c.name == name {
				c.figures[op] = figure{ns: ns}
			}
		}
	}
	set(yardstick, pair, 10)
	set(tripline, pair, 15)
	set(triplineClock, contended, 90)
	set(gobreaker, pair, 60)
	set(gobreaker, contended, 100)
	set(tripline, reject, 10)
	var out strings.Builder
	if !targets(&out, all) {
		t.Errorf("met, but said to be missed:\n%s", out.String())
	}
	set(tripline, pair, 15.1)
	if targets(&out, all) {
		t.Error("missed, but said to be met")
	}
}

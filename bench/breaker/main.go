// Command breaker measures what a circuit breaker costs a call: ours beside
// the ones that Go programs use today, in one run on one machine.
//
//	go run ./bench/breaker
//
// Every figure is the best of several rounds, taken in turns, so that a busy
// moment of the machine does not fall on one of them alone. The command ends
// with the targets and whether this run met them; it fails if one was missed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"text/tabwriter"
	"time"
)

func main() {
	testing.Init()
	rounds := flag.Int("rounds", 7, "rounds per figure; the best one counts")
	length := flag.Duration("time", 100*time.Millisecond, "length of a round")
	flag.Parse()
	if err := flag.Set("test.benchtime", length.String()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// Two goroutines that contend need two threads.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	all := contenders()
	measure(all, *rounds)
	table(os.Stdout, all)
	if !targets(os.Stdout, all) {
		os.Exit(1)
	}
}

// figure is one cell of the table.
type figure struct {
	ns     float64 // per operation; 0 if it was not measured
	allocs int64
}

// measure fills in the figures, round by round.
func measure(all []*contender, rounds int) {
	for range rounds {
		for _, c := range all {
			for op, bench := range c.bench {
				if bench == nil {
					continue
				}
				r := testing.Benchmark(bench)
				ns := float64(r.T) / float64(r.N)
				if f := &c.figures[op]; f.ns == 0 || ns < f.ns {
					*f = figure{ns, r.AllocsPerOp()}
				}
			}
		}
	}
}

func table(w io.Writer, all []*contender) {
	fmt.Fprintf(w, "%s/%s, %d threads; ns/op (allocations)\n\n", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tadmit + report\t2 goroutines\topen reject\t")
	for _, c := range all {
		fmt.Fprintf(t, "%s\t", c.name)
		for _, f := range c.figures {
			if f.ns == 0 {
				fmt.Fprint(t, "-\t")
			} else {
				fmt.Fprintf(t, "%.1f (%d)\t", f.ns, f.allocs)
			}
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// targets prints what was promised and whether it held.
func targets(w io.Writer, all []*contender) bool {
	by := map[string]*contender{}
	for _, c := range all {
		by[c.name] = c
	}
	mutex, ours, clock, sony := by[yardstick], by[tripline], by[triplineClock], by[gobreaker]
	met := true
	check := func(what string, got, limit float64) {
		verdict := "ok"
		if got > limit {
			verdict, met = "MISSED", false
		}
		fmt.Fprintf(w, "%-6s  %s: %.1f ns, at most %.1f\n", verdict, what, got, limit)
	}
	fmt.Fprintln(w)
	check("admit + report <= 1.5 x two mutex pairs", ours.figures[pair].ns, 1.5*mutex.figures[pair].ns)
	check("admit + report <= 1/4 of gobreaker's", ours.figures[pair].ns, sony.figures[pair].ns/4)
	check("2 goroutines ahead of gobreaker, reading the clock as it does", clock.figures[contended].ns, sony.figures[contended].ns)
	check("open reject", ours.figures[reject].ns, 10)
	if n := ours.figures[pair].allocs + ours.figures[contended].allocs + ours.figures[reject].allocs; n > 0 {
		met = false
		fmt.Fprintf(w, "MISSED  %d allocations\n", n)
	}
	return met
}

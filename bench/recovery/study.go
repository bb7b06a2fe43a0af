package main

import (
	"runtime"
	"slices"
	"sync"
)

// own leaves out the peers, which need a bubble.
func own(ds []discipline) []discipline {
	return slices.DeleteFunc(ds, func(d discipline) bool { return d.peer })
}

// only leaves out all but the peers.
func only(ds []discipline) []discipline {
	return slices.DeleteFunc(ds, func(d discipline) bool { return !d.peer })
}

// blank is a result that has yet to be filled in.
func blank(all []*scenario, ds []discipline, seeds int) *Result {
	res := &Result{Seeds: seeds}
	for _, sc := range all {
		res.Scenarios = append(res.Scenarios, ScenarioResult{
			Name: sc.name, OutageS: sc.outage.Seconds(), LivePerS: sc.live, Workers: sc.workers, Capacity: sc.capacity,
			Policies: make([]PolicyResult, len(ds)),
		})
	}
	return res
}

// study plays every scenario with every policy and every seed. progress is
// told how many of all the pairs of scenario and policy are done.
func study(all []*scenario, ds []discipline, seeds int, progress func(done, of int)) *Result {
	res := blank(all, ds, seeds)
	todo := make(chan [2]int)
	var mu sync.Mutex // guards done
	done := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for at := range todo {
				// Each goroutine writes to elements of its own.
				sc, d := all[at[0]], ds[at[1]]
				res.Scenarios[at[0]].Policies[at[1]] = sumUp(sc, d.name, play(sc, d, seeds))
				mu.Lock()
				done++
				progress(done, len(all)*len(ds))
				mu.Unlock()
			}
		})
	}
	for i := range all {
		for j := range ds {
			todo <- [2]int{i, j}
		}
	}
	close(todo)
	wg.Wait()
	return res
}

// play plays one scenario with one policy, once for each seed.
func play(sc *scenario, d discipline, seeds int) []*tally {
	var all []*tally
	for seed := range seeds {
		all = append(all, run(sc, d, uint64(seed), nil))
	}
	return all
}

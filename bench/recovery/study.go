package main

import (
	"runtime"
	"slices"
	"sync"
)

// study plays every scenario with every policy and every seed. bubble runs a
// function inside a testing/synctest bubble; nil leaves the peers out.
// progress is told how many of all the pairs of scenario and policy are done.
func study(all []*scenario, seeds int, bubble func(func()), progress func(done, of int)) *Result {
	type pair struct{ scenario, policy int }
	ds := disciplines()
	if bubble == nil {
		ds = slices.DeleteFunc(ds, func(d discipline) bool { return d.peer })
	}
	res := &Result{Seeds: seeds}
	var pairs []pair
	for i, sc := range all {
		res.Scenarios = append(res.Scenarios, ScenarioResult{
			Name: sc.name, OutageS: sc.outage.Seconds(), LivePerS: sc.live, Workers: sc.workers, Capacity: sc.capacity,
			Policies: make([]PolicyResult, len(ds)),
		})
		for j := range ds {
			pairs = append(pairs, pair{i, j})
		}
	}
	todo := make(chan pair)
	var mu sync.Mutex // guards done
	done := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range todo {
				sc, d := all[p.scenario], ds[p.policy]
				// Each goroutine writes to elements of its own.
				res.Scenarios[p.scenario].Policies[p.policy] = sumUp(sc, d.name, runs(sc, d, seeds, bubble))
				mu.Lock()
				done++
				progress(done, len(pairs))
				mu.Unlock()
			}
		})
	}
	for i := range pairs { // the long ones first
		todo <- pairs[len(pairs)-1-i]
	}
	close(todo)
	wg.Wait()
	return res
}

// runs plays one scenario with one policy, once for each seed.
func runs(sc *scenario, d discipline, seeds int, bubble func(func())) []*tally {
	var all []*tally
	for seed := range seeds {
		once := func() { all = append(all, run(sc, d, uint64(seed), nil)) }
		if d.peer {
			bubble(once)
		} else {
			once()
		}
	}
	return all
}

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
// told how many of the seeds are done.
func study(all []*scenario, ds []discipline, seeds int, progress func(done, of int)) *Result {
	runs := make([][][]*tally, len(all)) // scenario, policy, seed
	for i := range all {
		runs[i] = make([][]*tally, len(ds))
		for j := range ds {
			runs[i][j] = make([]*tally, seeds)
		}
	}
	todo := make(chan int)
	var mu sync.Mutex // guards done
	done := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			a := newArrivals(0)
			for seed := range todo {
				a.restart(uint64(seed))
				for i, sc := range all {
					for j, d := range ds {
						runs[i][j][seed] = run(sc, d, uint64(seed), a, nil) // no other goroutine's element
					}
				}
				mu.Lock()
				done++
				progress(done, seeds)
				mu.Unlock()
			}
		})
	}
	for seed := range seeds {
		todo <- seed
	}
	close(todo)
	wg.Wait()
	res := blank(all, ds, seeds)
	for i, sc := range all {
		for j, d := range ds {
			res.Scenarios[i].Policies[j] = sumUp(sc, d.name, runs[i][j])
		}
	}
	return res
}

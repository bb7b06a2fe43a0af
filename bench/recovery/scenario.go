package main

import (
	"fmt"
	"time"
)

// scenario is a consumer, the traffic to it, and how long it is sick.
type scenario struct {
	name     string
	outage   time.Duration
	vary     float64 // the outage's length varies by up to that share
	live     float64 // triggers per second
	workers  int
	consumer consumerConfig
	capacity float64       // calls per second that the warm consumer serves to the workers
	horizon  time.Duration // after healing, at most
	whole    bool          // play to the horizon
}

// outages are the lengths of the outage scenarios, in seconds.
var outages = []int{3, 7, 20, 60, 300}

// headline is the scenario that the README shows.
const headline = "outage-20s"

// base is the scenario that the others differ from.
func base(name string, outage time.Duration) *scenario {
	return &scenario{
		name: name, outage: outage, live: 400, workers: 16, capacity: 3200,
		horizon: 5*time.Minute + 2*outage,
		consumer: consumerConfig{
			healthy: 5 * time.Millisecond, ill: illness{1, sickLatency},
			backends: 4, missCost: 20 * time.Millisecond, warming: 200,
			fallsOver: true, fallsQueue: 8, fallsAfter: 50 * time.Millisecond, fallsFor: 8 * time.Second,
		},
	}
}

func scenarios() []*scenario {
	var all []*scenario
	for _, s := range outages {
		length := time.Duration(s) * time.Second
		all = append(all, base(fmt.Sprintf("outage-%ds", s), length))
		varied := base(fmt.Sprintf("outage-%ds-varied", s), length)
		varied.vary = 0.1
		all = append(all, varied)
	}
	twenty := func(name string, change func(*scenario)) {
		sc := base(name, 20*time.Second)
		change(sc)
		all = append(all, sc)
	}
	twenty("stands", func(sc *scenario) { sc.consumer.fallsOver = false })
	twenty("soft", func(sc *scenario) { sc.consumer.ill = illness{0.03, 80 * time.Millisecond} })
	twenty("marginal", func(sc *scenario) {
		sc.consumer.lasting = illness{0.1, 80 * time.Millisecond}
		sc.horizon, sc.whole = 5*time.Minute, true
	})
	twenty("quiet", func(sc *scenario) { sc.live, sc.horizon = 1, 3*time.Minute })
	twenty("one-slot", func(sc *scenario) { sc.consumer.backends = 1 })
	twenty("large-cache", func(sc *scenario) { sc.consumer.warming = 1000 })
	twenty("ordinary-32ms", func(sc *scenario) {
		// Log-normal: median 8 ms, 99th percentile 32 ms, mean 9.6 ms.
		sc.consumer.healthy, sc.consumer.spread, sc.capacity = 8*time.Millisecond, 0.596, 1670
	})
	twenty("live-2000", func(sc *scenario) { sc.live = 2000 })
	twenty("capacity-1600", func(sc *scenario) {
		sc.workers, sc.consumer.servers, sc.capacity = 64, 8, 1600
	})
	return all
}

// named returns the scenario of that name; nil if there is none.
func named(name string) *scenario {
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc
		}
	}
	return nil
}

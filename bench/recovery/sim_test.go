package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestQuick(t *testing.T) {
	for _, sc := range scenarios() {
		if f := os.Getenv("SC"); f != "" && !strings.Contains(sc.name, f) {
			continue
		}
		for _, d := range disciplines() {
			if d.peer && os.Getenv("PEER") == "" {
				continue
			}
			st := time.Now()
			n := 10
			var rs []*tally
			if d.peer {
				n = 2
			}
			for seed := range n {
				if d.peer {
					synctest.Test(t, func(*testing.T) { rs = append(rs, run(sc, d, uint64(seed), nil)) })
				} else {
					rs = append(rs, run(sc, d, uint64(seed), nil))
				}
			}
			p := sumUp(sc, d.name, rs)
			fmt.Printf("%-20s %-14s retrips %d/%d falls %d/%d closed %.1f %.1f %.1f probes %d timeouts %d slow %d slowsec %d drain %.1f<%.1f parked %d closes %v trips/min %.1f win %.1f out %d  [%v/run]\n", sc.name, d.name, p.RetripsP50, p.Retrips, p.FallsOverP50, p.FallsOver, p.HealthyToClosed.P50, p.HealthyToClosed.P95, p.HealthyToClosed.Max, p.MaxProbes, p.Timeouts, p.SlowCalls, p.SlowSeconds, p.Drain, p.DrainBound, p.Parked, p.Closes, p.TripsPerMin, p.Windows[:min(len(p.Windows), 9)], p.WindowOutOfRange, time.Since(st)/time.Duration(n))
		}
	}
}

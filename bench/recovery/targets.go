package main

import (
	"fmt"
	"strings"
)

// hard are the scenarios whose consumers need a gentle return.
var hard = []string{"one-slot", "large-cache", "ordinary-32ms", "live-2000", "capacity-1600"}

// missedTargets says which of the promises about tripline's recovery the figures
// break.
func missedTargets(res *Result) []string {
	var missed []string
	for i := range res.Scenarios {
		sc := &res.Scenarios[i]
		for _, name := range []string{"tripline", "tripline+hint"} {
			p := find(sc, name)
			if p == nil {
				continue
			}
			c := checker{where: sc.Name + ", " + name}
			hint := name == "tripline+hint"
			if strings.HasPrefix(sc.Name, "outage-") {
				c.outage(p, hint)
			}
			if hint && (strings.HasPrefix(sc.Name, "outage-") || sc.Name == "quiet") {
				c.atMost("closed after healing, p95", p.HealthyToClosed.P95, 4)
			}
			for _, h := range hard {
				if sc.Name == h {
					c.atMost("re-trips", float64(p.Retrips), 0)
				}
			}
			if sc.Name == "marginal" {
				c.atMost("trips per minute", p.TripsPerMin, 2)
			}
			missed = append(missed, c.missed...)
		}
	}
	return missed
}

type checker struct {
	where  string
	missed []string
}

func (c *checker) atMost(what string, got, limit float64) {
	if got > limit {
		c.missed = append(c.missed, fmt.Sprintf("%s: %s %.4g, at most %.4g", c.where, what, got, limit))
	}
}

// outage holds one clean transition: closed once, soon, and without hurting
// the consumer.
func (c *checker) outage(p *PolicyResult, hint bool) {
	c.atMost("closes", float64(p.Closes.Max), 1)
	c.atMost("missing closes", float64(1-p.Closes.Min), 0)
	c.atMost("re-trips", float64(p.Retrips), 0)
	c.atMost("falls", float64(p.FallsOver), 0)
	c.atMost("probes in flight", float64(p.MaxProbes), 2)
	c.atMost("timeouts after healing", float64(p.Timeouts), 0)
	c.atMost("slow calls after healing", float64(p.SlowCalls), 0)
	c.atMost("closed after healing, max", p.HealthyToClosed.Max, 36.2)
	c.atMost("drained", p.Drain, p.DrainBound)
	if !hint { // a hint shortens a window; its nominal length is as ever
		c.atMost("windows outside the ladder", float64(p.WindowOutOfRange), 0)
	}
}

package main

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/tripline/tripline/breaker"
)

// The picture: the headline scenario, first seed, one lane for each policy.
const (
	pictureSpan = 80 * time.Second
	laneHeight  = 120
	laneWidth   = 800
	laneLeft    = 130
	laneTop     = 64
)

const pictureStyle = `<style>
svg{font:12px system-ui,sans-serif;--ink:#1b1f24;--dim:#6b7280;--rule:#d5d9de;--closed:#2f9e64;--half:#d99a1c;--open:#d64545;--latency:#3566c9;--backlog:#8a6bc9;background:#fff}
@media(prefers-color-scheme:dark){svg{--ink:#e6e8eb;--dim:#9aa3ad;--rule:#3a4048;--closed:#3fb57a;--half:#e0ad45;--open:#e36464;--latency:#7ea2ef;--backlog:#b29bea;background:#14171a}}
text{fill:var(--ink)}.dim{fill:var(--dim)}.rule{stroke:var(--rule);fill:none}
.closed{fill:var(--closed)}.half{fill:var(--half)}.open{fill:var(--open)}
.latency{stroke:var(--latency);fill:none;stroke-width:1.3;stroke-linecap:round}.backlog{fill:var(--backlog);opacity:.35}
</style>
`

// picture draws the timelines under each other.
func picture() []byte {
	sc := named(headline)
	sc.whole, sc.horizon = true, pictureSpan-sc.outage
	ds := own(disciplines())
	traces := make([]*trace, len(ds))
	most := 1
	for i, d := range ds {
		traces[i] = new(trace)
		run(sc, d, 0, newArrivals(0), traces[i])
		for _, n := range traces[i].parked {
			most = max(most, n)
		}
	}
	var b bytes.Buffer
	height := laneTop + len(ds)*laneHeight + 60
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Recovery from a 20 s outage under five policies">`+"\n", laneLeft+laneWidth+70, height)
	b.WriteString(pictureStyle)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">A consumer is sick for 20 s, then comes back with a cold cache</text>`+"\n", laneLeft)
	fmt.Fprintf(&b, `<text class="dim" x="%d" y="38">band: breaker state; line: slowest call, log scale, dashes at the limit of 50 ms; area: backlog, up to %d</text>`+"\n", laneLeft, most)
	for i, d := range ds {
		lane(&b, laneTop+i*laneHeight, d.name, traces[i], most)
	}
	axis(&b, laneTop, laneTop+len(ds)*laneHeight)
	legend(&b, height-14)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// x is where a time lies.
func x(at time.Duration) float64 {
	return laneLeft + laneWidth*float64(min(at, pictureSpan))/float64(pictureSpan)
}

// lane draws one policy.
func lane(b *bytes.Buffer, top int, name string, t *trace, most int) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", laneLeft-12, top+15, name)
	from, state := time.Duration(0), breaker.Closed
	class := map[breaker.State]string{breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "half"}
	band := func(to time.Duration) {
		if width := x(to) - x(from); width > 0 {
			fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="16"/>`+"\n", class[state], x(from), top+3, max(width, 0.8))
		}
	}
	for _, s := range t.states {
		band(s.at)
		from, state = s.at, s.to
	}
	band(pictureSpan)

	floor := float64(top + laneHeight - 8)
	plot := float64(laneHeight - 34)
	fmt.Fprintf(b, `<path class="backlog" d="M%d %.1f`, laneLeft, floor)
	for i, n := range t.parked {
		if at := time.Duration(i) * traceStep; at <= pictureSpan {
			fmt.Fprintf(b, "L%.1f %.1f", x(at), floor-plot*float64(n)/float64(most))
		}
	}
	fmt.Fprintf(b, `L%.1f %.1fZ"/>`+"\n", x(pictureSpan), floor)

	// 2 ms at the floor, 250 ms at the top.
	y := func(d time.Duration) float64 {
		return floor - plot*max(0, math.Log(d.Seconds()*500)/math.Log(125))
	}
	fmt.Fprintf(b, `<path class="rule" stroke-dasharray="3 4" d="M%d %.1fH%d"/>`+"\n", laneLeft, y(limit), laneLeft+laneWidth)
	b.WriteString(`<path class="latency" d="`)
	pen := "M"
	for i, d := range t.latency {
		at := time.Duration(i) * traceStep
		if d == 0 || at > pictureSpan {
			pen = "M"
			continue
		}
		fmt.Fprintf(b, "%s%.1f %.1f", pen, x(at), y(d))
		if pen == "M" { // so that a lone point shows
			b.WriteString("h1.5")
		}
		pen = "L"
	}
	b.WriteString(`"/>` + "\n")
	fmt.Fprintf(b, `<path class="rule" d="M%d %.1fH%d"/>`+"\n", laneLeft, floor, laneLeft+laneWidth)
}

// axis draws the seconds, and the moment of healing.
func axis(b *bytes.Buffer, top, bottom int) {
	for s := time.Duration(0); s <= pictureSpan; s += 10 * time.Second {
		fmt.Fprintf(b, `<path class="rule" d="M%.1f %dv5"/><text class="dim" x="%.1f" y="%d" text-anchor="middle">%g s</text>`+"\n",
			x(s), bottom, x(s), bottom+18, s.Seconds())
	}
	healed := x(20 * time.Second)
	fmt.Fprintf(b, `<path class="rule" d="M%.1f %dV%d"/><text class="dim" x="%.1f" y="%d">healed</text>`+"\n", healed, top-4, bottom, healed+4, top-3)
}

func legend(b *bytes.Buffer, y int) {
	at := laneLeft
	for _, e := range [][2]string{{"closed", "closed"}, {"open", "open"}, {"half", "half-open"}} {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="12" height="12"/><text x="%d" y="%d">%s</text>`+"\n", e[0], at, y-10, at+17, y, e[1])
		at += 90
	}
}

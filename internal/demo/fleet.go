package demo

import (
	"fmt"
	"math/rand/v2"

	"github.com/tripline/tripline/geofence"
)

// Fleet is a number of vehicles that drive along the city's streets. The same
// seed gives the same journeys.
type Fleet struct {
	rng      *rand.Rand
	vehicles []vehicle
}

type vehicle struct {
	id       string
	at       point
	to       [2]int  // the crossing that it heads for
	from     [2]int  // the one that it left
	speed    float64 // metres per second
	lastStep int64   // unix milliseconds
}

// NewFleet places n vehicles in the streets, at the time start (unix ms).
func NewFleet(seed uint64, n int, start int64) *Fleet {
	f := &Fleet{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range n {
		from := [2]int{f.rng.IntN(streets), f.rng.IntN(streets)}
		v := vehicle{
			id:       fmt.Sprintf("van-%03d", i+1),
			at:       crossing(from),
			from:     from,
			speed:    9 + 9*f.rng.Float64(),
			lastStep: start,
		}
		v.to = f.turn(from, from)
		// Somewhere along the street, so that they don't all arrive at once.
		way, goal := f.rng.Float64(), crossing(v.to)
		v.at.x += way * (goal.x - v.at.x)
		v.at.y += way * (goal.y - v.at.y)
		f.vehicles = append(f.vehicles, v)
	}
	return f
}

// Len is the number of vehicles.
func (f *Fleet) Len() int { return len(f.vehicles) }

// Step drives vehicle i on to the time now (unix ms) and returns its fix.
func (f *Fleet) Step(i int, now int64) geofence.Fix {
	v := &f.vehicles[i]
	left := v.speed * float64(now-v.lastStep) / 1000
	v.lastStep = now
	for left > 0 {
		goal := crossing(v.to)
		dx, dy := goal.x-v.at.x, goal.y-v.at.y
		distance := max(dx, -dx) + max(dy, -dy) // streets run along one axis
		if left < distance {
			v.at.x += dx / distance * left
			v.at.y += dy / distance * left
			break
		}
		left -= distance
		v.at = goal
		v.from, v.to = v.to, f.turn(v.from, v.to)
	}
	lat, lon := v.at.latLon()
	return geofence.Fix{
		Device: v.id, Lat: lat, Lon: lon, TS: now,
		Has: geofence.HasSpeed, Speed: v.speed,
	}
}

// turn picks the next crossing: any neighbour of here but the one that the
// vehicle comes from.
func (f *Fleet) turn(from, here [2]int) [2]int {
	var choices [4][2]int
	n := 0
	for _, d := range [4][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
		next := [2]int{here[0] + d[0], here[1] + d[1]}
		inTown := next[0] >= 0 && next[0] < streets && next[1] >= 0 && next[1] < streets
		if inTown && next != from {
			choices[n] = next
			n++
		}
	}
	return choices[f.rng.IntN(n)]
}

func crossing(c [2]int) point { return point{float64(c[0]) * block, float64(c[1]) * block} }

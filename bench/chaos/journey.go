package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tripline/tripline/geofence"
)

// epoch is when the fleet's device time begins: long ago, as if its history
// was replayed.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// location is a message to be published.
type location struct {
	subject, id string
	payload     []byte
	fix         *geofence.Fix // what a tracker has to make of it; nil: it is refused, or dropped by its id
}

// journey is one place in the fleet: a device drives about until it retires to
// the garage, and another takes its place. The same seed gives the same
// journeys, step by step.
type journey struct {
	rng     *rand.Rand
	number  int
	devices int // that had the place before
	device  string
	subject string
	step    int
	sent    int // messages of the device, to number them
	newest  geofence.Fix
}

func newJourney(seed uint64, number int) *journey {
	j := &journey{rng: rand.New(rand.NewPCG(seed, uint64(1000+number))), number: number}
	j.name()
	return j
}

// name begins the next device. Every fourth is known by two tokens.
func (j *journey) name() {
	j.sent = 0
	if j.number%4 == 3 {
		j.device = fmt.Sprintf("crew-%d.van-%d", j.number, j.devices)
		j.subject = "fleet." + j.device
		return
	}
	j.device = fmt.Sprintf("van-%d-%d", j.number, j.devices)
	j.subject = "location." + j.device
}

// next returns what is published in the next step, in order.
func (j *journey) next() []location {
	ts := epoch.Add(time.Duration(j.step) * time.Hour).UnixMilli()
	j.step++
	if j.newest.Device != "" && j.rng.IntN(60) == 0 {
		out := []location{j.report(inGarage(j.rng), ts)}
		j.devices++
		j.newest = geofence.Fix{}
		j.name()
		return out
	}
	out := []location{j.report(anywhere(j.rng), ts)}
	if j.rng.IntN(8) == 0 { // soon enough after for what lies between to be crossed
		out = append(out, j.report(anywhere(j.rng), ts+30_000))
	}
	switch j.rng.IntN(24) {
	case 0: // an older one, elsewhere
		out = append(out, j.judged(j.fix(anywhere(j.rng), j.newest.TS-int64(1+j.rng.IntN(100))*60_000)))
	case 1: // the same time again, elsewhere
		out = append(out, j.judged(j.fix(anywhere(j.rng), j.newest.TS)))
	case 2: // the very same again, under another id
		out = append(out, j.judged(j.newest))
	case 3: // the very same message again
		again := out[len(out)-1]
		again.fix = nil
		out = append(out, again)
	case 4: // from tomorrow
		out = append(out, j.judged(j.fix(anywhere(j.rng), time.Now().Add(24*time.Hour).UnixMilli())))
	case 5:
		out = append(out, j.refused(fmt.Appendf(nil, `{"lat":95,"lon":%.7f,"ts":%d}`, cityLon, ts+60_000)))
	case 6:
		out = append(out, j.refused([]byte(`{"lat":53.0}`)))
	}
	return out
}

// report is a fix that moves the device on.
func (j *journey) report(at place, ts int64) location {
	j.newest = j.fix(at, ts)
	return j.judged(j.newest)
}

func (j *journey) fix(at place, ts int64) geofence.Fix {
	lat, lon := at.latLon()
	return geofence.Fix{
		Device: j.device, Lat: lat, Lon: lon, TS: ts,
		Has: geofence.HasSpeed, Speed: float64(j.rng.IntN(30)),
	}
}

func (j *journey) judged(fix geofence.Fix) location {
	l := j.refused(fmt.Appendf(nil, `{"lat":%.7f,"lon":%.7f,"ts":%d,"speed":%.0f}`, fix.Lat, fix.Lon, fix.TS, fix.Speed))
	l.fix = &fix
	return l
}

func (j *journey) refused(payload []byte) location {
	j.sent++
	return location{subject: j.subject, id: fmt.Sprintf("%s/%d", j.device, j.sent), payload: payload}
}

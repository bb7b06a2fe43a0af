package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
)

// The city lies in the sea off the west of Ireland, so that nobody takes it
// for a real one: three by three zones with a depot in the middle of each,
// a reserve over four of them, and a garage apart from all.
const (
	cityLat, cityLon = 53.0, -14.0 // south-west corner, degrees
	zones            = 3           // in each direction
	zoneSide         = 1000.0      // metres
	zonePitch        = 1200.0      // metres from one zone to the next
	depotRadius      = 100.0       // metres
	garageAt         = 6000.0      // metres, both ways
	garageRadius     = 150.0       // metres
	metresPerDegree  = 111_195.0   // of latitude
)

// Device time runs an hour a step, and a stay in a zone is told after an hour
// and a half: a dwell is due at least half an hour of device time away from
// every fix. So it does not matter whether the server stored a fix a few
// seconds, or minutes, later than it was meant to: the expected triggers don't
// depend on the kills. In the garage a stay is told after seconds, and nobody
// ever leaves it: that makes dwells which only the clock fires.
const (
	zoneDwell   = "90m"
	garageDwell = "3s"
)

// place is a point in the city, metres east and north of its corner.
type place struct{ x, y float64 }

// latLon gives the place in degrees, as they are written in a message: what
// both sides judge is the same number.
func (p place) latLon() (lat, lon float64) {
	lat = cityLat + p.y/metresPerDegree
	lon = cityLon + p.x/(metresPerDegree*math.Cos(cityLat*math.Pi/180))
	return written(lat), written(lon)
}

// written is v as seven decimals say it.
func written(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 7, 64), 64)
	if err != nil {
		panic(err) // it was formatted just now
	}
	return v
}

func (p place) position() []float64 {
	lat, lon := p.latLon()
	return []float64{lon, lat} // GeoJSON has longitude first
}

// anywhere picks a place in or around the zones, as often as not at a depot.
func anywhere(rng *rand.Rand) place {
	if rng.IntN(2) == 0 {
		i, j := rng.IntN(zones), rng.IntN(zones)
		return scatter(rng, place{zoneMiddle(i), zoneMiddle(j)}, 0.6*depotRadius)
	}
	span := zones*zonePitch + 800
	return place{rng.Float64()*span - 500, rng.Float64()*span - 500}
}

// inGarage picks a place in the garage.
func inGarage(rng *rand.Rand) place {
	return scatter(rng, place{garageAt, garageAt}, 0.6*garageRadius)
}

func scatter(rng *rand.Rand, p place, reach float64) place {
	return place{p.x + (2*rng.Float64()-1)*reach, p.y + (2*rng.Float64()-1)*reach}
}

func zoneMiddle(i int) float64 { return float64(i)*zonePitch + zoneSide/2 }

type object map[string]any

// cityFences is the city as GeoJSON.
func cityFences() []byte {
	var features []object
	for i := range zones {
		for j := range zones {
			west, south := float64(i)*zonePitch, float64(j)*zonePitch
			features = append(features,
				feature(fmt.Sprintf("zone-%d-%d", i, j), "zone", object{"dwell": []string{zoneDwell}}, square(west, south, zoneSide)),
				feature(fmt.Sprintf("depot-%d-%d", i, j), "depot", object{"radius_m": depotRadius}, circle(place{zoneMiddle(i), zoneMiddle(j)})))
		}
	}
	features = append(features,
		feature("reserve", "reserve", nil, square(-300, -300, 2*zonePitch+100)),
		feature("garage", "garage", object{"radius_m": garageRadius, "dwell": []string{garageDwell}}, circle(place{garageAt, garageAt})))
	data, err := json.MarshalIndent(object{"type": "FeatureCollection", "features": features}, "", " ")
	if err != nil {
		panic(err) // maps of strings and finite numbers always encode
	}
	return data
}

func feature(id, tag string, props, geometry object) object {
	all := object{"name": id, "tags": []string{tag}}
	maps.Copy(all, props)
	return object{"type": "Feature", "id": id, "properties": all, "geometry": geometry}
}

func circle(middle place) object {
	return object{"type": "Point", "coordinates": middle.position()}
}

func square(west, south, side float64) object {
	return object{"type": "Polygon", "coordinates": [][][]float64{{
		place{west, south}.position(),
		place{west + side, south}.position(),
		place{west + side, south + side}.position(),
		place{west, south + side}.position(),
		place{west, south}.position(),
	}}}
}

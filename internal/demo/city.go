// Package demo shows Tripline at work: a small city, a fleet that drives
// through it, and three consumers of which one falls sick and recovers.
package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"
)

// The city is a grid of streets. It lies in the sea off the west of Ireland,
// so that nobody takes it for a real one.
const (
	cityLat, cityLon = 53.0, -12.0 // south-west corner, degrees
	streets          = 13          // in each direction
	block            = 250.0       // metres between two streets
	depotRadius      = 60.0        // metres
	zoneDwell        = 20 * time.Second
	metresPerDegree  = 111_195.0 // of latitude, on a sphere of 6,371,008.8 m
)

// point is a place in the city, metres east and north of its corner.
type point struct{ x, y float64 }

func (p point) latLon() (lat, lon float64) {
	lat = cityLat + p.y/metresPerDegree
	return lat, cityLon + p.x/(metresPerDegree*math.Cos(cityLat*math.Pi/180))
}

func (p point) position() []float64 {
	lat, lon := p.latLon()
	return []float64{lon, lat} // GeoJSON has longitude first
}

type object map[string]any

// Fences returns the city's fences as GeoJSON: a depot at every second
// crossing (circles), nine zones (polygons) and a park with a lake, where
// being on the lake is not being in the park.
func Fences() []byte {
	var features []object
	for i := range streets {
		for j := i % 2; j < streets; j += 2 {
			features = append(features, feature(fmt.Sprintf("depot-%d-%d", i, j), "depot",
				object{"radius_m": depotRadius},
				object{"type": "Point", "coordinates": point{float64(i) * block, float64(j) * block}.position()}))
		}
	}
	const zone = 4 * block
	for i := range 3 {
		for j := range 3 {
			// Half a block off the streets: vehicles cross the border, they don't drive along it.
			west, south := float64(i)*zone-block/2, float64(j)*zone-block/2
			features = append(features, feature(fmt.Sprintf("zone-%c%d", 'a'+i, j+1), "zone",
				object{"dwell": []string{zoneDwell.String()}},
				object{"type": "Polygon", "coordinates": [][][]float64{square(west, south, zone)}}))
		}
	}
	middle := float64(streets-1) / 2 * block
	features = append(features, feature("park", "park", nil, object{
		"type": "Polygon",
		"coordinates": [][][]float64{
			square(middle-1.5*block, middle-1.5*block, 3*block),
			square(middle-0.4*block, middle-0.4*block, 0.8*block),
		},
	}))
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

func square(west, south, size float64) [][]float64 {
	return [][]float64{
		point{west, south}.position(),
		point{west + size, south}.position(),
		point{west + size, south + size}.position(),
		point{west, south + size}.position(),
		point{west, south}.position(),
	}
}

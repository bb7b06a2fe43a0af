package main

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
)

// The city is a square of flat land. Its size follows the number of fences,
// so that their density, and with it what matching has to do for a fix, stays
// the same.
const (
	cityLat, cityLon = 50.0, 4.0 // south-west corner, degrees
	metresPerDegree  = 111_195.0 // of latitude
	fencesPerKM2     = 6.25      // 10,000 fences in 40 km x 40 km
	vertices         = 20
	radiusMin        = 60.0 // metres
	radiusMax        = 140.0
)

// city is what everything else follows from: the same values give the same
// fences, devices and journeys.
type city struct {
	Seed    uint64  `json:"seed"`
	Fences  int     `json:"fences"`
	Devices int     `json:"devices"`
	Share   float64 `json:"share"` // transitions per fix
}

// side is the length of the city's edge in metres.
func (c city) side() float64 {
	return 1000 * math.Sqrt(float64(max(c.Fences, 100))/fencesPerKM2)
}

// The projection: metres east and north of the corner, and degrees.
func lonScale() float64 { return metresPerDegree * math.Cos(cityLat*math.Pi/180) }

// fence makes the outline of the next fence: a polygon with 20 vertices around
// a random place, not quite round.
func (c city) fence(rng *rand.Rand, ring *[vertices + 1][2]float64) {
	radius := radiusMin + (radiusMax-radiusMin)*rng.Float64()
	side := c.side()
	x := radiusMax + rng.Float64()*(side-2*radiusMax)
	y := radiusMax + rng.Float64()*(side-2*radiusMax)
	for k := range vertices {
		r := radius * (0.9 + 0.2*rng.Float64())
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / vertices)
		ring[k] = [2]float64{x + r*cos, y + r*sin}
	}
	ring[vertices] = ring[0]
}

func (c city) fenceRand() *rand.Rand { return rand.New(rand.NewPCG(c.Seed, 1)) }

// step is how far a device goes from one fix to the next, in metres, so that
// the wanted share of fixes makes a transition: a straight way crosses outlines
// of total length L in an area A 2L/(pi A) times per unit of its length.
func (c city) step() float64 {
	rng := c.fenceRand()
	var ring [vertices + 1][2]float64
	sample := min(max(c.Fences, 1), 10_000)
	length := 0.0
	for range sample {
		c.fence(rng, &ring)
		for k := range vertices {
			length += math.Hypot(ring[k+1][0]-ring[k][0], ring[k+1][1]-ring[k][1])
		}
	}
	length *= float64(c.Fences) / float64(sample)
	crossings := 2 * length / (math.Pi * c.side() * c.side())
	if crossings == 0 {
		return 1
	}
	return c.Share / crossings
}

// writeFences writes the city's fences as GeoJSON.
func (c city) writeFences(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the fences: %w", err)
	}
	defer func() {
		if e := file.Close(); err == nil && e != nil {
			err = fmt.Errorf("writing the fences: %w", e)
		}
	}()
	w := bufio.NewWriterSize(file, 1<<20)
	rng := c.fenceRand()
	var ring [vertices + 1][2]float64
	var line []byte
	fmt.Fprint(w, `{"type":"FeatureCollection","features":[`)
	for i := range c.Fences {
		c.fence(rng, &ring)
		line = line[:0]
		if i > 0 {
			line = append(line, ',')
		}
		line = fmt.Appendf(line, "\n"+`{"type":"Feature","id":"f%07d","properties":{"name":"Fence %d"},"geometry":{"type":"Polygon","coordinates":[[`, i, i)
		for k, p := range ring {
			if k > 0 {
				line = append(line, ',')
			}
			line = append(line, '[')
			line = strconv.AppendFloat(line, cityLon+p[0]/lonScale(), 'f', 7, 64)
			line = append(line, ',')
			line = strconv.AppendFloat(line, cityLat+p[1]/metresPerDegree, 'f', 7, 64)
			line = append(line, ']')
		}
		line = append(line, `]]}}`...)
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("writing the fences: %w", err)
		}
	}
	fmt.Fprint(w, "\n]}\n")
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the fences: %w", err)
	}
	return nil
}

// fleet drives the devices: straight on, and back from the city's edge.
type fleet struct {
	side float64
	at   []vehicle
}

// vehicle is where a device is and how far it goes per fix, in metres.
type vehicle struct{ x, y, dx, dy float64 }

func (c city) fleet() *fleet {
	f := &fleet{side: c.side(), at: make([]vehicle, c.Devices)}
	rng := rand.New(rand.NewPCG(c.Seed, 2))
	step := c.step()
	for i := range f.at {
		sin, cos := math.Sincos(2 * math.Pi * rng.Float64())
		f.at[i] = vehicle{x: rng.Float64() * f.side, y: rng.Float64() * f.side, dx: step * cos, dy: step * sin}
	}
	return f
}

// move takes a device one step further.
func (f *fleet) move(i int) {
	v := &f.at[i]
	v.x, v.dx = bounce(v.x+v.dx, v.dx, f.side)
	v.y, v.dy = bounce(v.y+v.dy, v.dy, f.side)
}

func bounce(at, step, side float64) (float64, float64) {
	switch {
	case at < 0:
		return -at, -step
	case at > side:
		return 2*side - at, -step
	}
	return at, step
}

// appendFix appends the payload of a device's fix as devices send it.
func (f *fleet) appendFix(dst []byte, i int, tsMS int64) []byte {
	v := &f.at[i]
	dst = append(dst, `{"lat":`...)
	dst = appendDegrees(dst, cityLat+v.y/metresPerDegree)
	dst = append(dst, `,"lon":`...)
	dst = appendDegrees(dst, cityLon+v.x/lonScale())
	dst = append(dst, `,"ts":`...)
	dst = strconv.AppendInt(dst, tsMS, 10)
	dst = append(dst, `,"speed":`...)
	dst = strconv.AppendInt(dst, int64(1+i%30), 10)
	dst = append(dst, `,"heading":`...)
	dst = strconv.AppendInt(dst, int64(i%360), 10)
	return append(dst, '}')
}

// appendDegrees writes 7 decimals, which is a centimetre.
func appendDegrees(dst []byte, v float64) []byte {
	n := int64(v*1e7 + 0.5)
	dst = strconv.AppendInt(dst, n/1e7, 10)
	dst = append(dst, '.')
	var digits [7]byte
	for k, rest := 6, n%1e7; k >= 0; k, rest = k-1, rest/10 {
		digits[k] = byte('0' + rest%10)
	}
	return append(dst, digits[:]...)
}

// deviceName and deviceNumber turn a device's number into its id and back.
func deviceName(i int) string { return fmt.Sprintf("d%07d", i) }

func deviceNumber(name string) (int, error) {
	if len(name) < 2 || name[0] != 'd' {
		return 0, fmt.Errorf("%q is no device of the city", name)
	}
	return strconv.Atoi(name[1:])
}

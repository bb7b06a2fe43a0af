package geofence

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"time"
)

// Fence is a named area with properties. It is made by [ParseFences] and is
// immutable: what its exported fields refer to must not be written to.
type Fence struct {
	// ring is the whole shape of a fence that is one small ring in the
	// ordinary frame; it saves the most common kind two steps in memory.
	ring  []point
	shape shape

	// ID is unique within an [Index].
	ID string
	// Name is the property `name`, or "".
	Name string
	// Tags are the property `tags`.
	Tags []string
	// Props are the feature's properties that are not rules of the fence, as
	// given: a JSON object, or nil. `name` and `tags` are among them.
	Props json.RawMessage
	// Revision numbers the stored version of the fence, so that two versions
	// of one id can be told apart later. The caller sets it with
	// [Fence.WithRevision]; 0 is unknown.
	Revision uint64

	rules *rules // its own rules; nil if it has none
}

// shape is where a fence is. Points are in degrees, in the ordinary frame.
type shape interface {
	// contains says whether the point is inside or on the boundary.
	contains(p point) bool
	// within says whether the point is inside or at most m metres away.
	within(p point, m float64) bool
	// crossing returns the first and last place, as parameters 0..1, where
	// the segment from a to b touches a shape that contains neither.
	crossing(a, b point) (from, to float64, ok bool)
	// boxes appends boxes that together hold the shape. Their x may leave
	// -180..180.
	boxes(dst []box) []box
	// clear returns half the height, in degrees, of a box around p that the
	// boundary surely doesn't touch: at most limit. See clear.go.
	clear(p point, scale, limit float64) float64
	// appendGeometry appends the GeoJSON geometry.
	appendGeometry(dst []byte) []byte
}

// rules are those that a fence sets itself, in place of those of the [Config].
type rules struct {
	set           ruleSet
	confirm       int
	exitBufferM   float64
	maxAccuracyM  float64
	minAlt        float64         // -Inf if there is no limit
	maxAlt        float64         // +Inf if there is no limit
	dwell         []time.Duration // rising
	active        *schedule       // nil: always
	activeWritten json.RawMessage
}

// ruleSet says which rules are set.
type ruleSet uint8

const (
	setExitBuffer ruleSet = 1 << iota
	setConfirm
	setDwell
	setMaxAccuracy
	setBand
)

// WithRevision returns a copy of the fence that carries rev.
func (f *Fence) WithRevision(rev uint64) *Fence {
	c := *f
	c.Revision = rev
	return &c
}

// Digest is the SHA-256 of the canonical feature. Fences with equal digests
// judge alike and carry the same properties.
func (f *Fence) Digest() [32]byte {
	b, err := f.MarshalFeature()
	if err != nil { // props that aren't JSON: not from ParseFences
		b = append([]byte(f.ID), f.Props...)
	}
	return sha256.Sum256(b)
}

// Contains says whether the point, in degrees, is inside the fence or on its
// boundary. Only geometry counts: altitude and schedule are the [Tracker]'s.
func (f *Fence) Contains(lat, lon float64) bool {
	p := point{lon, lat}
	return f.contains(p) || onSeam(p) && f.contains(opposite(p))
}

// onSeam says whether p is on the meridian that has two longitudes.
func onSeam(p point) bool { return p.x == 180 || p.x == -180 }

// opposite is p under the seam's other longitude.
func opposite(p point) point { return point{-p.x, p.y} }

// contains is Contains for one of the seam's two longitudes.
func (f *Fence) contains(p point) bool {
	if f.ring != nil {
		return inRing(f.ring, p)
	}
	return f.shape.contains(p)
}

// boxesOf appends the boxes that the index keeps a shape under: one, or two on
// both sides of the antimeridian.
func boxesOf(s shape, dst []box) []box {
	all := s.boxes(make([]box, 0, 4))
	var east, west *box // by the half of the world that their middle is in
	join := func(to **box, b box) {
		if *to != nil {
			b = b.union(**to)
		}
		*to = &b
	}
	add := func(b box) {
		if b.min.x+b.max.x >= 0 {
			join(&east, b)
		} else {
			join(&west, b)
		}
	}
	for _, b := range all {
		if b.max.x-b.min.x >= 360 {
			b.min.x, b.max.x = -180, 180
		}
		if shift := 360 * math.Floor((b.min.x+180)/360); shift != 0 {
			b = b.shift(-shift)
		}
		if b.max.x > 180 {
			add(box{point{-180, b.min.y}, point{b.max.x - 360, b.max.y}})
			b.max.x = 180
		}
		add(b)
	}
	switch {
	case west == nil:
		return append(dst, *east)
	case east == nil:
		return append(dst, *west)
	case east.max.x-west.min.x <= 180 || east.min.x <= west.max.x:
		return append(dst, east.union(*west))
	}
	return append(dst, *west, *east)
}

// schedule is when the fence is active; nil is always.
func (f *Fence) schedule() *schedule {
	if f.rules == nil {
		return nil
	}
	return f.rules.active
}

// banded says whether the fence has an altitude band.
func (f *Fence) banded() bool { return f.rules != nil && f.rules.set&setBand != 0 }

// coarsest is the worst accuracy, in metres, that the fence's own rule takes:
// 0 if it has none.
func (f *Fence) coarsest() float64 {
	switch {
	case f.rules == nil || f.rules.set&setMaxAccuracy == 0:
		return 0
	case f.rules.maxAccuracyM == 0:
		return math.Inf(1)
	}
	return f.rules.maxAccuracyM
}

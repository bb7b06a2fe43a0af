package geofence

import "math"

// item is a fence, or a piece of one, as the index holds it: one line of the
// processor's cache, with which most boxes that the search finds are settled.
type item struct {
	ring  []point // all of the shape, if it is one small ring; else nil
	shape shape
	fence *Fence
	core  core
}

// core is a box surely inside the shape, rounded inwards; else an empty one.
type core struct{ minX, minY, maxX, maxY float32 }

var noCore = core{1, 1, -1, -1}

func itemOf(f *Fence) item {
	it := item{ring: f.ring, shape: f.shape, fence: f, core: noCore}
	if f.ring != nil {
		it.core = coreOf(f.ring)
	}
	return it
}

func (it *item) contains(p point) bool {
	if it.ring == nil {
		return it.shape.contains(p)
	}
	c := &it.core
	return p.x >= float64(c.minX) && p.x <= float64(c.maxX) && p.y >= float64(c.minY) && p.y <= float64(c.maxY) ||
		inRing(it.ring, p)
}

// coreOf returns a box around the middle of the ring, of the proportions of
// the ring's own, that no edge touches.
func coreOf(ring []point) core {
	b := boxOf(ring)
	mid := lerp(b.min, b.max, 0.5)
	if !inRing(ring, mid) {
		return noCore
	}
	w, h := b.max.x-b.min.x, b.max.y-b.min.y
	square := 1.0 // in shares of the ring's box
	for i := 1; i < len(ring); i++ {
		square = min(square, squareFrom(point{}, point{(ring[i-1].x - mid.x) / w, (ring[i-1].y - mid.y) / h},
			point{(ring[i].x - mid.x) / w, (ring[i].y - mid.y) / h}, 1))
	}
	half := math.Sqrt(square) * squareIn
	return core{up(mid.x - half*w), up(mid.y - half*h), down(mid.x + half*w), down(mid.y + half*h)}
}

// up rounds to a float32 that is not less, down to one that is not more.
func up(v float64) float32 {
	f := float32(v)
	if float64(f) < v {
		f = math.Nextafter32(f, math.MaxFloat32)
	}
	return f
}

func down(v float64) float32 { return -up(-v) }

// maxWhole is how many polygons, or stretches of a line, a shape has at most
// for the index to hold it in one piece: one box around many islands would
// cost a look at each of them.
const maxWhole = 8

// pieces returns the fence's pieces as items of their own; nil if it is better
// held whole.
func (it *item) pieces() []item {
	var shapes []shape
	switch s := it.shape.(type) {
	case polygons:
		if len(s) > maxWhole {
			for _, p := range s {
				shapes = append(shapes, polygons{p})
			}
		}
	case *corridor:
		if len(s.blocks) > maxWhole {
			shapes = s.split(maxWhole * stretchEdges)
		}
	}
	out := make([]item, len(shapes))
	for i, s := range shapes {
		out[i] = item{shape: s, fence: it.fence, core: noCore}
	}
	return out
}

// split cuts a corridor into corridors of some edges.
func (c *corridor) split(edges int) (out []shape) {
	for _, line := range c.lines {
		for i := 0; i < len(line)-1; i += edges {
			out = append(out, newCorridor([][]point{line[i:min(i+edges+1, len(line))]}, c.radiusM))
		}
	}
	return out
}

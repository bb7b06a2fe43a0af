package geofence

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// scratch is memory that the rings of one feature after another share.
type scratch struct {
	pts  []point
	offs []int // of the points, in the file
}

// written is a line or a ring as the file has it.
type written struct {
	pts  []point
	offs []int
	at   int // offset of its list
}

// position consumes a GeoJSON position. Further numbers, such as an
// altitude, are passed over.
func (s *scanner) position() (p point, off int) {
	s.peek()
	off = s.pos
	n := 0
	s.array(func() {
		switch n {
		case 0:
			p.x = s.number()
		case 1:
			p.y = s.number()
		default:
			s.skip()
		}
		n++
	})
	switch {
	case s.err != nil:
	case n < 2:
		s.fail(off, "a position needs longitude and latitude, but has %d numbers", n)
	case math.Abs(p.y) > 90 && math.Abs(p.x) <= 90:
		s.fail(off, "latitude %s is not in -90..90: looks like lat,lon swapped", plain(p.y))
	case math.Abs(p.y) > 90 && math.Abs(p.x) > 180:
		s.fail(off, "longitude %s, latitude %s look like metres of a map projection: convert them to WGS 84 degrees", plain(p.x), plain(p.y))
	case math.Abs(p.y) > 90:
		s.fail(off, "latitude %s is not in -90..90", plain(p.y))
	case math.Abs(p.x) > 180:
		s.fail(off, "longitude %s is not in -180..180", plain(p.x))
	}
	return p, off
}

// line consumes a list of positions. Its memory lasts until the next feature.
func (s *scanner) line(mem *scratch) written {
	s.peek()
	w := written{at: s.pos}
	from := len(mem.pts)
	s.array(func() {
		p, off := s.position()
		mem.pts = append(mem.pts, p)
		mem.offs = append(mem.offs, off)
	})
	w.pts, w.offs = mem.pts[from:len(mem.pts):len(mem.pts)], mem.offs[from:len(mem.offs):len(mem.offs)]
	return w
}

func (s *scanner) lines(mem *scratch) (all []written) {
	s.array(func() { all = append(all, s.line(mem)) })
	return all
}

// geometry is one that has been read, but not judged.
type geometry struct {
	at       int
	kind     string
	point    point
	lines    []written
	polygons [][]written
	parts    []geometry // of a GeometryCollection
}

func (s *scanner) geometry(mem *scratch) (g geometry) {
	s.peek()
	g.at = s.pos
	var coordinates, parts span
	s.object(func(key string) {
		switch key {
		case "type":
			g.kind = s.kind()
		case "coordinates":
			coordinates = s.skip()
		case "geometries":
			parts = s.skip()
		default:
			s.skip()
		}
	})
	if s.err != nil {
		return g
	}
	body := coordinates
	if g.kind == "GeometryCollection" {
		body = parts
	}
	if body.to == 0 {
		s.fail(g.at, "%s: it has no coordinates", kindName(g.kind))
		return g
	}
	in := s.at(body)
	switch g.kind {
	case "Point":
		g.point, _ = in.position()
	case "LineString":
		g.lines = []written{in.line(mem)}
	case "MultiLineString":
		g.lines = in.lines(mem)
	case "Polygon":
		g.polygons = [][]written{in.lines(mem)}
	case "MultiPolygon":
		in.array(func() { g.polygons = append(g.polygons, in.lines(mem)) })
	case "GeometryCollection":
		in.array(func() { g.parts = append(g.parts, in.geometry(mem)) })
	default:
		s.fail(g.at, "%s is not a geometry that a fence can have", kindName(g.kind))
		return g
	}
	if s.err == nil {
		s.err = in.err
	}
	return g
}

func kindName(kind string) string {
	if kind == "" {
		return "a geometry without a type"
	}
	return kind
}

// flatten takes a GeometryCollection apart, where what it means is clear: one
// geometry, or polygons only.
func (g geometry) flatten() (geometry, *placeError) {
	if g.kind != "GeometryCollection" {
		return g, nil
	}
	if len(g.parts) == 1 {
		return g.parts[0].flatten()
	}
	all := geometry{at: g.at, kind: "MultiPolygon"}
	for _, part := range g.parts {
		part, e := part.flatten()
		if e != nil {
			return g, e
		}
		if part.polygons == nil {
			return g, &placeError{part.at, "a collection has to be of one geometry, or of polygons only"}
		}
		all.polygons = append(all.polygons, part.polygons...)
	}
	return all, nil
}

// shape reads the feature's geometry into f.
func (p *parser) shape(f *Fence, m *members, r radius) *placeError {
	if m.geometry.to == 0 || p.data[m.geometry.from] == 'n' {
		return &placeError{max(m.from, m.geometry.from), "the feature has no geometry, so nothing could be inside"}
	}
	p.scratch.pts, p.scratch.offs = p.scratch.pts[:0], p.scratch.offs[:0]
	s := (&scanner{data: p.data}).at(m.geometry)
	g := s.geometry(&p.scratch)
	if s.err != nil {
		return s.err
	}
	g, e := g.flatten()
	if e != nil {
		return e
	}
	switch {
	case g.kind == "Point":
		if r.at.to == 0 {
			return &placeError{g.at, "a Point needs the property radius_m to be a circle"}
		}
		f.shape = newCircle(g.point, r.m)
	case g.lines != nil:
		f.shape, e = corridorOf(g, r)
	case r.at.to != 0:
		return &placeError{r.at.from, "radius_m is for a Point or a LineString, not for a " + g.kind}
	default:
		f.ring, f.shape, e = polygonsOf(g)
	}
	return e
}

func corridorOf(g geometry, r radius) (*corridor, *placeError) {
	if r.at.to == 0 {
		return nil, &placeError{g.at, "a " + g.kind + " needs the property radius_m to be a corridor"}
	}
	if r.m > maxCorridorM {
		return nil, &placeError{r.at.from, fmt.Sprintf("radius_m: a corridor's is at most %s", plain(maxCorridorM))}
	}
	lines := make([][]point, 0, len(g.lines))
	for _, w := range g.lines {
		if len(w.pts) < 2 {
			return nil, &placeError{w.at, "a line needs at least 2 positions"}
		}
		lines = append(lines, unwrapLine(w.pts))
	}
	if len(lines) == 0 {
		return nil, &placeError{g.at, "there is no line"}
	}
	c := newCorridor(lines, r.m)
	for i, w := range g.lines {
		if slices.Equal(w.pts, lines[i]) {
			c.written = append(c.written, lines[i])
		} else {
			c.written = append(c.written, slices.Clone(w.pts))
		}
	}
	return c, nil
}

// polygonsOf judges polygons. ring is set if they are a single small ring in
// the ordinary frame.
func polygonsOf(g geometry) (ring []point, all polygons, e *placeError) {
	if len(g.polygons) == 0 {
		return nil, nil, &placeError{g.at, "there is no polygon"}
	}
	all = make(polygons, 0, len(g.polygons))
	for _, rings := range g.polygons {
		p, e := polygonOf(g.at, rings)
		if e != nil {
			return nil, nil, e
		}
		all = append(all, p)
	}
	if p := all[0]; len(all) == 1 && len(p.ends) == 1 && p.grid == nil && p.box.max.x <= 180 {
		ring = p.pts
	}
	return ring, all, nil
}

func appendPosition(dst []byte, p point) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendFloat(dst, p.x, 'f', -1, 64)
	dst = append(dst, ',')
	dst = strconv.AppendFloat(dst, p.y, 'f', -1, 64)
	return append(dst, ']')
}

func appendLine(dst []byte, pts []point) []byte {
	dst = append(dst, '[')
	for i, p := range pts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPosition(dst, p)
	}
	return append(dst, ']')
}

// appendList appends the JSON list of n items.
func appendList(dst []byte, n int, item func(dst []byte, i int) []byte) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = item(dst, i)
	}
	return append(dst, ']')
}

package geofence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// FenceError says what is wrong with one feature of a fence file.
type FenceError struct {
	ID           string // of the fence, if it has one
	Index        int    // of the feature in its collection, from 0; -1 outside any
	Line, Column int    // of the place in the file, from 1; the column in bytes
	Msg          string
}

func (e *FenceError) Error() string {
	at := fmt.Sprintf("%d:%d: ", e.Line, e.Column)
	switch {
	case e.ID != "":
		return at + fmt.Sprintf("fence %q: ", e.ID) + e.Msg
	case e.Index >= 0:
		return at + fmt.Sprintf("feature %d: ", e.Index) + e.Msg
	}
	return at + e.Msg
}

// maxProblems is how many problems of one file are told at most.
const maxProblems = 100

// ParseFences reads a GeoJSON FeatureCollection or Feature (RFC 7946). A
// fence is a Polygon, a MultiPolygon, a Point with `radius_m` (a circle), or a
// LineString with `radius_m` (a corridor). Its id is the feature's `id`, or
// its property `id`.
//
// All problems, up to a hundred, are joined into one error, each a
// [*FenceError]; then there are no fences.
func ParseFences(data []byte) ([]*Fence, error) {
	p := &parser{data: data, seen: map[string]int{}, zones: zones{}}
	p.file()
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return p.fences, nil
}

// parser reads one file.
type parser struct {
	data     []byte
	fences   []*Fence
	problems []error
	seen     map[string]int // offset of the feature by id
	zones    zones
	scratch  scratch
}

func (p *parser) problem(id string, index int, e *placeError) {
	switch {
	case len(p.problems) < maxProblems:
		line, column := place(p.data, e.off)
		p.problems = append(p.problems, &FenceError{id, index, line, column, e.msg})
	case len(p.problems) == maxProblems:
		p.problems = append(p.problems, errors.New("more problems are left out"))
	}
}

// members are a feature's parts that matter.
type members struct {
	from                          int
	kind                          string
	id, properties, geometry, crs span
}

// take notes a member's place; false if it isn't one that matters.
func (m *members) take(s *scanner, key string) {
	switch key {
	case "type":
		m.kind = s.kind()
	case "id":
		m.id = s.skip()
	case "properties":
		m.properties = s.skip()
	case "geometry":
		m.geometry = s.skip()
	case "crs":
		m.crs = s.skip()
	default:
		s.skip()
	}
}

// kind consumes the value of a member "type".
func (s *scanner) kind() string {
	if s.err == nil && s.peek() != '"' {
		s.skip()
		return ""
	}
	k, _ := s.str()
	return k
}

// notUTF8 returns the offset of the first byte that is not UTF-8, or -1. Ids
// that JSON could not carry unchanged would no longer be told apart.
func notUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

func (p *parser) file() {
	if bytes.HasPrefix(p.data, []byte{0xFE, 0xFF}) || bytes.HasPrefix(p.data, []byte{0xFF, 0xFE}) {
		p.problem("", -1, &placeError{0, "the file is UTF-16: save it as UTF-8"})
		return
	}
	if at := notUTF8(p.data); at >= 0 {
		p.problem("", -1, &placeError{at, "the file is not UTF-8 from here on: save it as UTF-8"})
		return
	}
	s := &scanner{data: p.data}
	if bytes.HasPrefix(p.data, byteOrderMark) {
		s.pos = len(byteOrderMark)
	}
	if s.peek(); s.pos == len(s.data) {
		p.problem("", -1, &placeError{0, "the file is empty: it has to hold a GeoJSON FeatureCollection"})
		return
	}
	top := members{from: s.pos}
	collected := false
	s.object(func(key string) {
		if key != "features" {
			top.take(s, key)
			return
		}
		collected = true
		index := 0
		s.array(func() {
			p.element(s, index)
			index++
		})
	})
	if s.err == nil && s.peek() != 0 {
		s.fail(s.pos, "something follows the end of the GeoJSON object")
	}
	if s.err != nil {
		p.problem("", -1, s.err)
		return
	}
	p.crs(top.crs)
	switch {
	case top.kind == "FeatureCollection" && !collected:
		p.problem("", -1, &placeError{top.from, "the FeatureCollection has no features"})
	case top.kind == "FeatureCollection":
	case top.kind == "Feature":
		p.feature(&top, -1)
	case top.kind == "":
		p.problem("", -1, &placeError{top.from, "not GeoJSON: it has no type"})
	default:
		p.problem("", -1, &placeError{top.from, fmt.Sprintf(
			"type %q: a fence file is a FeatureCollection or a Feature", top.kind)})
	}
}

// element reads one item of the list of features.
func (p *parser) element(s *scanner, index int) {
	s.peek()
	m := members{from: s.pos}
	s.object(func(key string) { m.take(s, key) })
	switch {
	case s.err != nil:
	case m.kind != "Feature":
		p.problem("", index, &placeError{m.from, fmt.Sprintf("type %q where a Feature should be", m.kind)})
	default:
		p.feature(&m, index)
	}
}

// crs takes the member that older GeoJSON has, if it says what RFC 7946 says
// anyway.
func (p *parser) crs(at span) {
	if at.to == 0 {
		return
	}
	var crs *struct{ Properties struct{ Name string } }
	if json.Unmarshal(p.data[at.from:at.to], &crs) == nil {
		if crs == nil {
			return
		}
		name := strings.ToUpper(crs.Properties.Name)
		if strings.HasSuffix(name, "CRS84") || strings.HasSuffix(name, "EPSG:4326") || strings.HasSuffix(name, "EPSG::4326") {
			return
		}
	}
	p.problem("", -1, &placeError{at.from, "crs: coordinates have to be WGS 84 longitude and latitude"})
}

// feature reads one fence.
func (p *parser) feature(m *members, index int) {
	f := &Fence{}
	s := &scanner{data: p.data}
	before := len(p.problems)
	fail := func(e *placeError) {
		if e != nil {
			p.problem(f.ID, index, e)
		}
	}
	props := s.at(m.properties).properties(p.zones)
	id, e := s.id(m, props.id)
	f.ID = id
	fail(e)
	for _, e := range props.problems {
		fail(e)
	}
	f.Name, f.Tags, f.Props = props.name, props.tags, props.rest
	if props.rules.set != 0 || props.rules.active != nil {
		f.rules = &props.rules
	}
	fail(p.shape(f, m, props.radius))
	if f.ID != "" {
		if first, dup := p.seen[f.ID]; dup {
			line, column := place(p.data, first)
			fail(&placeError{m.from, fmt.Sprintf("the id is taken by the feature at %d:%d", line, column)})
		} else {
			p.seen[f.ID] = m.from
		}
	}
	if len(p.problems) == before {
		p.fences = append(p.fences, f)
	}
}

// maxIDBytes bounds a fence's id.
const maxIDBytes = 256

// id reads the feature's id, or else its property.
func (s *scanner) id(m *members, property span) (string, *placeError) {
	at := m.id
	if at.to == 0 || s.data[at.from] == 'n' {
		at = property
	}
	if at.to == 0 || s.data[at.from] == 'n' {
		return "", &placeError{m.from, "the feature has no id"}
	}
	var id string
	switch c := s.data[at.from]; {
	case c == '"':
		id, _ = s.at(at).str()
	case c == '-' || c >= '0' && c <= '9':
		id = string(s.data[at.from:at.to])
	default:
		return "", &placeError{at.from, "an id is a string or a number"}
	}
	switch {
	case id == "":
		return "", &placeError{at.from, "the id is empty"}
	case len(id) > maxIDBytes:
		return "", &placeError{at.from, fmt.Sprintf("the id is longer than %d bytes", maxIDBytes)}
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7F }):
		return "", &placeError{at.from, "the id has a control character"}
	}
	return id, nil
}

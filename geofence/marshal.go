package geofence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// MarshalFeature returns the fence as a GeoJSON feature in canonical form:
// parsed again it gives an equal fence. Revision is not part of it. It fails
// only if Props, set from outside, are not a JSON object.
func (f *Fence) MarshalFeature() ([]byte, error) {
	b := appendJSONString([]byte(`{"type":"Feature","id":`), f.ID)
	b = append(b, `,"properties":`...)
	b, err := f.appendProperties(b)
	if err != nil {
		return nil, fmt.Errorf("fence %q: %w", f.ID, err)
	}
	b = append(b, `,"geometry":`...)
	b = f.shape.appendGeometry(b)
	return append(b, '}'), nil
}

// appendProperties appends the properties: first those that aren't rules.
func (f *Fence) appendProperties(b []byte) ([]byte, error) {
	own := f.appendRules(nil)
	props := bytes.TrimSpace(f.Props)
	if len(props) == 0 && len(own) == 0 {
		return append(b, "null"...), nil
	}
	if len(props) == 0 {
		props = []byte("{}")
	}
	if props[0] != '{' || !json.Valid(props) {
		return nil, fmt.Errorf("properties are not a JSON object")
	}
	b = append(b, props[:len(props)-1]...)
	if len(own) > 0 {
		if len(bytes.TrimSpace(props[1:len(props)-1])) > 0 {
			b = append(b, ',')
		}
		b = append(b, own[1:]...) // without the comma before the first
	}
	return append(b, '}'), nil
}

// appendRules appends the rules as members, each after a comma.
func (f *Fence) appendRules(b []byte) []byte {
	number := func(key string, v float64) {
		b = append(b, `,"`+key+`":`...)
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	switch s := f.shape.(type) {
	case *circle:
		number("radius_m", s.radiusM)
	case *corridor:
		number("radius_m", s.radiusM)
	}
	r := f.rules
	if r == nil {
		return b
	}
	if r.set&setExitBuffer != 0 {
		number("exit_buffer_m", r.exitBufferM)
	}
	if r.set&setConfirm != 0 {
		number("confirm", float64(r.confirm))
	}
	if r.set&setDwell != 0 {
		b = append(b, `,"dwell":`...)
		b = appendList(b, len(r.dwell), func(b []byte, i int) []byte {
			return appendJSONString(b, r.dwell[i].String())
		})
	}
	if r.set&setMaxAccuracy != 0 {
		number("max_accuracy_m", r.maxAccuracyM)
	}
	if !math.IsInf(r.minAlt, 0) {
		number("min_alt_m", r.minAlt)
	}
	if !math.IsInf(r.maxAlt, 0) {
		number("max_alt_m", r.maxAlt)
	}
	if r.active != nil {
		b = append(b, `,"active":`...)
		b = append(b, r.activeWritten...)
	}
	return b
}

func (c *circle) appendGeometry(dst []byte) []byte {
	dst = append(dst, `{"type":"Point","coordinates":`...)
	return append(appendPosition(dst, c.centre), '}')
}

func (c *corridor) appendGeometry(dst []byte) []byte {
	one := func(dst []byte, i int) []byte { return appendLine(dst, c.written[i]) }
	if len(c.lines) == 1 {
		dst = append(dst, `{"type":"LineString","coordinates":`...)
		return append(one(dst, 0), '}')
	}
	dst = append(dst, `{"type":"MultiLineString","coordinates":`...)
	return append(appendList(dst, len(c.lines), one), '}')
}

func (ps polygons) appendGeometry(dst []byte) []byte {
	if len(ps) == 1 {
		dst = append(dst, `{"type":"Polygon","coordinates":`...)
		return append(ps[0].appendRings(dst), '}')
	}
	dst = append(dst, `{"type":"MultiPolygon","coordinates":`...)
	dst = appendList(dst, len(ps), func(dst []byte, i int) []byte { return ps[i].appendRings(dst) })
	return append(dst, '}')
}

func (p *polygon) appendRings(dst []byte) []byte {
	return appendList(dst, len(p.ends), func(dst []byte, i int) []byte {
		if p.written != nil {
			return appendLine(dst, p.written[i])
		}
		return appendLine(dst, p.ring(i))
	})
}

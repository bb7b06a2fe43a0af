package router

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tripline/tripline/geofence"
)

// ContentType is the media type of a trigger's body.
const ContentType = "application/cloudevents+json"

// AppendBody appends the CloudEvents 1.0 JSON of a transition. The order of
// the keys never changes, so that bodies can be compared as bytes; optional
// ones are left out where they do not apply. Properties of the fence and of
// the fix are copied as they are: they must be valid JSON.
func AppendBody(dst []byte, namespace, id, sequence string, tr *geofence.Transition) []byte {
	kind := tr.Kind.String()
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = append(dst, id...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, EventType(tr.Kind)...)
	dst = append(dst, `","source":`...)
	dst = appendString(dst, "/tripline/"+namespace)
	dst = append(dst, `,"subject":`...)
	dst = appendString(dst, tr.Device)
	dst = append(dst, `,"time":`...)
	dst = appendTime(dst, tr.At)
	dst = append(dst, `,"sequence":"`...)
	dst = append(dst, sequence...)
	dst = append(dst, `","datacontenttype":"application/json","data":{"device":`...)
	dst = appendString(dst, tr.Device)
	dst = append(dst, `,"transition":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","at":`...)
	dst = appendTime(dst, tr.At)
	if tr.Fence != nil {
		dst = append(dst, `,"fence":`...)
		dst = appendFence(dst, tr.Fence)
	}
	dst = append(dst, `,"fix":`...)
	dst = appendFix(dst, &tr.Fix)
	dst = appendCircumstances(dst, tr)
	return append(dst, `}}`...)
}

// EventType returns the CloudEvents type of a kind of transition.
func EventType(k geofence.Kind) string { return "dev.tripline." + k.String() + ".v1" }

// appendCircumstances appends what only some transitions have.
func appendCircumstances(dst []byte, tr *geofence.Transition) []byte {
	if tr.Since != 0 && tr.Since != tr.At {
		dst = append(dst, `,"since":`...)
		dst = appendTime(dst, tr.Since)
	}
	if tr.EnteredAt != 0 {
		dst = append(dst, `,"entered_at":`...)
		dst = appendTime(dst, tr.EnteredAt)
	}
	if tr.ExitedAt != 0 {
		dst = append(dst, `,"exited_at":`...)
		dst = appendTime(dst, tr.ExitedAt)
	}
	if tr.Kind == geofence.Dwell {
		dst = append(dst, `,"dwell_s":`...)
		dst = appendFloat(dst, tr.Dwell.Seconds())
	}
	if tr.Initial {
		dst = append(dst, `,"initial":true`...)
	}
	if tr.Reason != "" {
		dst = append(dst, `,"reason":`...)
		dst = appendString(dst, tr.Reason)
	}
	return dst
}

// appendFence appends a fence without its geometry. Consumers may rely on
// all four keys.
func appendFence(dst []byte, f *geofence.Fence) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, f.ID)
	dst = append(dst, `,"name":`...)
	dst = appendString(dst, f.Name)
	dst = append(dst, `,"tags":[`...)
	for i, tag := range f.Tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, tag)
	}
	dst = append(dst, `],"props":`...)
	if len(f.Props) == 0 {
		dst = append(dst, `{}`...)
	} else {
		dst = append(dst, f.Props...)
	}
	return append(dst, '}')
}

func appendFix(dst []byte, f *geofence.Fix) []byte {
	dst = append(dst, `{"lat":`...)
	dst = appendFloat(dst, f.Lat)
	dst = append(dst, `,"lon":`...)
	dst = appendFloat(dst, f.Lon)
	dst = append(dst, `,"ts":`...)
	dst = appendTime(dst, f.TS)
	if f.Has&geofence.HasAccuracy != 0 {
		dst = append(dst, `,"accuracy":`...)
		dst = appendFloat(dst, f.Accuracy)
	}
	if f.Has&geofence.HasSpeed != 0 {
		dst = append(dst, `,"speed":`...)
		dst = appendFloat(dst, f.Speed)
	}
	if f.Has&geofence.HasHeading != 0 {
		dst = append(dst, `,"heading":`...)
		dst = appendFloat(dst, f.Heading)
	}
	if f.Has&geofence.HasAlt != 0 {
		dst = append(dst, `,"alt":`...)
		dst = appendFloat(dst, f.Alt)
	}
	if len(f.Props) != 0 {
		dst = append(dst, `,"props":`...)
		dst = append(dst, f.Props...)
	}
	return append(dst, '}')
}

// timeLayout is RFC 3339 with milliseconds, always three digits of them.
const timeLayout = `"2006-01-02T15:04:05.000Z07:00"`

func appendTime(dst []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(dst, timeLayout)
}

// appendFloat writes the shortest decimal that reads back as the same number,
// in the form that encoding/json chooses. JSON has no NaN and no infinity;
// ingest refuses them, and a body must stay valid all the same.
func appendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, v, format, -1, 64)
	if format == 'e' {
		// e-09 becomes e-9.
		if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD. The line separators are escaped, as encoding/json does, so that the
// body is also valid JavaScript.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // start of what has not been copied yet
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[plain:i]...)
			dst = appendEscaped(dst, c)
			i++
			plain = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[plain:i]...)
			dst = append(dst, `\ufffd`...)
			plain = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[plain:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			plain = i + size
		}
		i += size
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

package ingest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tripline/tripline/geofence"
)

// Decode reads a location payload into fix. The caller sets the fix's Device,
// Stored and Seq before; the rest is overwritten.
//
// The payload is a JSON object in one of two formats. With a key `_type` it is
// OwnTracks': `lat`, `lon`, `tst`, `acc`, `vel` (km/h), `cog`, `alt`. Else it
// has `lat`, `lon` and optionally `ts` (RFC 3339, unix seconds or unix
// milliseconds), `accuracy`, `speed` (m/s), `heading`, `alt`, `props` (an
// object), and `id` or `device`, which must be the fix's Device. Keys are
// compared exactly, case included; others are passed over; null is the same as
// absent; of a repeated key the last one counts. Without a time, the fix is
// taken to be from when it was stored. A negative speed or heading is how
// phones say that they do not know it, and is left out.
//
// The error is ErrIgnored or a *Refusal. Fix.Props points into payload.
// Decode does not allocate for a valid payload without escaped keys.
func Decode(payload []byte, fix *geofence.Fix) error {
	if len(payload) > MaxPayload {
		return refuse(Oversized, "payload of %d bytes; at most %d are accepted", len(payload), MaxPayload)
	}
	if !utf8.Valid(payload) {
		return refuse(Encoding, "payload is not UTF-8")
	}
	d := decoder{payload: payload}
	s := scanner{b: payload}
	if !s.document(&d.values) {
		return refuse(Malformed, "no valid JSON at byte %d: %s", s.i, s.err)
	}
	*fix = geofence.Fix{Device: fix.Device, Stored: fix.Stored, Seq: fix.Seq}
	var r *Refusal
	if d.has(keyType) {
		ignored := false
		if ignored, r = d.ownTracks(fix); ignored {
			return ErrIgnored
		}
	} else {
		r = d.plain(fix)
	}
	if r != nil { // a nil *Refusal must not become an error that is not nil
		return r
	}
	return nil
}

// decoder makes a fix of what the scanner found.
type decoder struct {
	payload []byte
	values  [keys]value
}

func (d *decoder) has(k key) bool { return d.values[k].kind > null }

// raw is a value as it stands in the payload.
func (d *decoder) raw(k key) []byte { return d.payload[d.values[k].start:d.values[k].end] }

// text is the content of a value that is a string.
func (d *decoder) text(k key) []byte {
	raw := d.raw(k)
	if d.values[k].kind == escaped {
		return []byte(unquote(raw))
	}
	return raw[1 : len(raw)-1]
}

func (d *decoder) wrongType(k key, want string) *Refusal {
	return refuse(Malformed, "%v is %v; send %s", k, d.values[k].kind, want)
}

func (d *decoder) plain(fix *geofence.Fix) *Refusal {
	if r := d.checkDevice(fix.Device); r != nil {
		return r
	}
	if r := d.position(fix); r != nil {
		return r
	}
	if r := d.time(keyTS, fix); r != nil {
		return r
	}
	if r := d.motion(fix, keyAccuracy, keySpeed, keyHeading, 1); r != nil {
		return r
	}
	if d.has(keyProps) {
		if d.values[keyProps].kind != object {
			return d.wrongType(keyProps, "an object")
		}
		fix.Props = d.raw(keyProps)
	}
	return nil
}

// ownTracks reads OwnTracks' format. Its messages that are no location are
// ignored: an app sends them on the same topic.
func (d *decoder) ownTracks(fix *geofence.Fix) (ignored bool, r *Refusal) {
	if k := d.values[keyType].kind; k != text && k != escaped {
		return false, d.wrongType(keyType, "a string")
	}
	switch string(d.text(keyType)) {
	case "location":
	case "encrypted":
		return false, refuse(Encrypted, "OwnTracks' payload encryption can't be read here; switch it off and use TLS")
	default:
		return true, nil
	}
	if r := d.position(fix); r != nil {
		return false, r
	}
	if r := d.time(keyTst, fix); r != nil {
		return false, r
	}
	const kmhToMS = 1 / 3.6
	return false, d.motion(fix, keyAcc, keyVel, keyCog, kmhToMS)
}

func (d *decoder) position(fix *geofence.Fix) (r *Refusal) {
	switch lat, lon := d.has(keyLat), d.has(keyLon); {
	case !lat && !lon:
		return refuse(Missing, "lat and lon are missing%s", d.hint())
	case !lat:
		return refuse(Missing, "lat is missing%s", d.hint())
	case !lon:
		return refuse(Missing, "lon is missing%s", d.hint())
	}
	if fix.Lat, r = d.number(keyLat); r != nil {
		return r
	}
	if fix.Lon, r = d.number(keyLon); r != nil {
		return r
	}
	return checkPosition(fix.Lat, fix.Lon)
}

func checkPosition(lat, lon float64) *Refusal {
	latFits := -90 <= lat && lat <= 90
	lonFits := -180 <= lon && lon <= 180
	switch {
	case latFits && lonFits:
		return nil
	case !latFits && lonFits && -180 <= lat && lat <= 180 && -90 <= lon && lon <= 90:
		return refuse(Range, "lat %v is outside -90..90; lat and lon look swapped", lat)
	case !latFits:
		return refuse(Range, "lat %v is outside -90..90", lat)
	}
	return refuse(Range, "lon %v is outside -180..180", lon)
}

// hint names a key that was probably meant to be lat or lon.
func (d *decoder) hint() string {
	for _, k := range []string{"latitude", "longitude", "lng", "long", "Lat", "Lon", "LAT", "LON", "coordinates"} {
		if bytes.Contains(d.payload, []byte(`"`+k+`"`)) {
			return "; there is \"" + k + "\", the keys are \"lat\" and \"lon\""
		}
	}
	return ""
}

func (d *decoder) time(k key, fix *geofence.Fix) (r *Refusal) {
	switch v := d.values[k]; v.kind {
	case absent, null:
		fix.TS = fix.Stored
	case number:
		fix.TS, r = unixMillis(v.num)
	case text, escaped:
		if k != keyTS {
			return d.wrongType(k, "a number")
		}
		ms, ok := parseRFC3339(d.text(k))
		if !ok {
			return refuse(Timestamp, "ts %.64q is not a time in RFC 3339, such as 2026-01-31T09:30:00Z", d.text(k))
		}
		if ms <= 0 {
			return refuse(Timestamp, "ts %.64q is not after 1970; is the device's clock set?", d.text(k))
		}
		fix.TS = ms
	default:
		return d.wrongType(k, "a time")
	}
	return r
}

// motion reads the optional numbers.
func (d *decoder) motion(fix *geofence.Fix, accuracy, speed, heading key, speedUnit float64) (r *Refusal) {
	if d.has(accuracy) {
		if fix.Accuracy, r = d.number(accuracy); r != nil {
			return r
		}
		if fix.Accuracy < 0 {
			return refuse(Range, "%v %v is negative: the device says that its position is not valid", accuracy, fix.Accuracy)
		}
		fix.Has |= geofence.HasAccuracy
	}
	if d.has(speed) {
		v, r := d.number(speed)
		if r != nil {
			return r
		}
		if v >= 0 {
			fix.Speed = v * speedUnit
			fix.Has |= geofence.HasSpeed
		}
	}
	if d.has(heading) {
		v, r := d.number(heading)
		switch {
		case r != nil:
			return r
		case v > 360:
			return refuse(Range, "%v %v is outside 0..360", heading, v)
		case v >= 0:
			fix.Heading = v
			fix.Has |= geofence.HasHeading
		}
	}
	if d.has(keyAlt) {
		if fix.Alt, r = d.number(keyAlt); r != nil {
			return r
		}
		fix.Has |= geofence.HasAlt
	}
	return nil
}

func (d *decoder) number(k key) (float64, *Refusal) {
	v := d.values[k]
	if v.kind != number {
		return 0, d.wrongType(k, "a number")
	}
	if !finite(v.num) {
		return 0, refuse(Range, "%v %.64s is too large", k, d.raw(k))
	}
	return v.num, nil
}

// checkDevice holds a device id in the payload against that of the subject.
func (d *decoder) checkDevice(device string) *Refusal {
	for _, k := range [...]key{keyID, keyDevice} {
		if !d.has(k) {
			continue
		}
		var id []byte
		switch d.values[k].kind {
		case text, escaped:
			id = d.text(k)
		case number:
			id = d.raw(k)
		default:
			return d.wrongType(k, "a string")
		}
		if string(id) != device && string(id) != mqttID(device) {
			return refuse(Device, "%v %.64q is not the device of the subject, %q", k, id, device)
		}
	}
	return nil
}

// mqttID is a device id as its MQTT client writes it: in a topic level the
// server encodes a dot as two slashes.
func mqttID(device string) string {
	if !strings.Contains(device, "//") {
		return device
	}
	return strings.ReplaceAll(device, "//", ".")
}

package ingest

import (
	"strconv"
)

// ParseTS reads a ts that stands in a text, as in a table: RFC 3339, unix
// seconds or unix milliseconds. The result is unix milliseconds; the error is
// a *Refusal. It takes what [Decode] takes in JSON.
func ParseTS(b []byte) (int64, error) {
	ms, ok := parseRFC3339(b)
	if !ok {
		v, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return 0, refuse(Timestamp, "ts %.64q is neither a time in RFC 3339, such as 2026-01-31T09:30:00Z, nor unix seconds or milliseconds", b)
		}
		ms, r := unixMillis(v)
		if r != nil { // a nil *Refusal must not become an error that is not nil
			return 0, r
		}
		return ms, nil
	}
	if ms <= 0 {
		return 0, refuse(Timestamp, "ts %.64q is not after 1970; is the device's clock set?", b)
	}
	return ms, nil
}

// CheckPosition refuses a position that is not on the earth, as [Decode] does.
func CheckPosition(lat, lon float64) error {
	if r := checkPosition(lat, lon); r != nil {
		return r
	}
	return nil
}

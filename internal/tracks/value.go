package tracks

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tripline/tripline/geofence"
)

// parseTime reads RFC 3339 or unix seconds or milliseconds (from 1e11 on)
// into unix milliseconds.
func parseTime(b []byte) (int64, error) {
	if ms, ok := fastTime(b); ok {
		return ms, nil
	}
	if len(b) == 0 {
		return 0, fmt.Errorf("ts is empty")
	}
	if f, err := strconv.ParseFloat(string(b), 64); err == nil {
		if ms, ok := unixTime(f); ok {
			return ms, nil
		}
		return 0, fmt.Errorf("ts %q is out of range", clip(b))
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return 0, fmt.Errorf("ts %q must be RFC 3339, as in 2026-01-31T08:00:00Z, or unix seconds or milliseconds", clip(b))
	}
	return t.UnixMilli(), nil
}

func unixTime(f float64) (int64, bool) {
	if math.Abs(f) < 1e11 {
		f *= 1000
	}
	if !(math.Abs(f) <= 253402300799999) { // the end of the year 9999
		return 0, false
	}
	return int64(math.Round(f)), true
}

// fastTime reads the common form 2026-01-31T08:00:00[.123]Z without
// allocating; everything else is left to the time package.
func fastTime(b []byte) (int64, bool) {
	if len(b) < 20 || len(b) > 30 || b[len(b)-1] != 'Z' || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, ok1 := digits(b[0:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	hour, ok4 := digits(b[11:13])
	minute, ok5 := digits(b[14:16])
	second, ok6 := digits(b[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	ms := int64(0)
	if len(b) > 20 {
		fraction := b[20 : len(b)-1]
		if b[19] != '.' || len(fraction) == 0 {
			return 0, false
		}
		scale := int64(100)
		for _, c := range fraction {
			if c < '0' || c > '9' {
				return 0, false
			}
			ms += int64(c-'0') * scale
			scale /= 10
		}
	}
	days := daysSince1970(year, month, day)
	return ((days*24+int64(hour))*60+int64(minute))*60_000 + int64(second)*1000 + ms, true
}

func digits(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func monthDays(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts days in the Gregorian calendar, with years that begin
// in March, so that the leap day comes last.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	y := int64(year)
	return 365*y + y/4 - y/100 + y/400 + int64((153*(month-3)+2)/5) + int64(day) - 1 - 719468
}

func parseNumber(key string, b []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(b)), 64)
	if err != nil || f-f != 0 {
		return 0, fmt.Errorf("%s %q is no number", key, clip(b))
	}
	return f, nil
}

// clip keeps the quotes of bad input short.
func clip(b []byte) string {
	if len(b) > 60 {
		return string(b[:60]) + "..."
	}
	return string(b)
}

// checkPlace refuses positions that are not on the earth.
func checkPlace(lat, lon float64) error {
	switch {
	case lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180:
		return nil
	case math.Abs(lat) > 90 && math.Abs(lat) <= 180 && math.Abs(lon) <= 90:
		return fmt.Errorf("lat %v is beyond 90 degrees: lat and lon look swapped", lat)
	case !(math.Abs(lat) <= 90):
		return fmt.Errorf("lat %v is beyond 90 degrees", lat)
	}
	return fmt.Errorf("lon %v is beyond 180 degrees", lon)
}

// setOptional sets one of the optional fields of a fix. Phones write a
// negative accuracy, speed or heading for one that they don't know.
func setOptional(f *geofence.Fix, which geofence.Fields, v float64) {
	switch which {
	case geofence.HasAccuracy:
		f.Accuracy = v
	case geofence.HasSpeed:
		f.Speed = v
	case geofence.HasHeading:
		f.Heading = v
	case geofence.HasAlt:
		f.Alt = v
		f.Has |= which
		return
	}
	if v >= 0 {
		f.Has |= which
	}
}

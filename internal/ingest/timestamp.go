package ingest

import "math"

const (
	// A number from here on is unix milliseconds, below it unix seconds: as
	// seconds it would be the year 5138, as milliseconds it is 1973.
	firstMillis = 1e11
	// maxMillis is the end of the year 9999, the last that RFC 3339 can name.
	maxMillis = 253402300799999
)

// unixMillis reads a ts that is a number: unix seconds, with a fraction or
// without, or unix milliseconds.
func unixMillis(v float64) (int64, *Refusal) {
	if v >= 0 && v < firstMillis {
		v *= 1000
	}
	v = math.Round(v)
	switch {
	case !(v > 0): // also NaN, which JSON can't write
		return 0, refuse(Timestamp, "ts %v is not after 1970; is the device's clock set?", v)
	case v > maxMillis:
		return 0, refuse(Timestamp, "ts %v is past the year 9999; send unix seconds or milliseconds", v)
	}
	return int64(v), nil
}

// parseRFC3339 reads a time such as 2026-11-29T21:04:18.5+01:00, strictly by
// RFC 3339, into unix milliseconds. Anything
// finer is cut off.
func parseRFC3339(b []byte) (ms int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") ||
		b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	ok = true
	num := func(from, to, low, high int) int {
		n := 0
		for _, c := range b[from:to] {
			ok = ok && isDigit(c)
			n = n*10 + int(c-'0')
		}
		ok = ok && low <= n && n <= high
		return n
	}
	year, month := num(0, 4, 0, 9999), num(5, 7, 1, 12)
	if !ok {
		return 0, false
	}
	day := num(8, 10, 1, daysIn(year, month))
	seconds := daysSince1970(year, month, day)*86400 +
		int64(num(11, 13, 0, 23)*3600+num(14, 16, 0, 59)*60+num(17, 19, 0, 59))

	i := 19
	fraction := 0
	if b[i] == '.' {
		i++
		first := i
		for scale := 100; i < len(b) && isDigit(b[i]); i++ {
			fraction += int(b[i]-'0') * scale
			scale /= 10
		}
		ok = ok && i > first
	}
	switch rest := b[i:]; {
	case len(rest) == 1 && rest[0] == 'Z':
	case len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':':
		offset := int64(num(i+1, i+3, 0, 23)*3600 + num(i+4, i+6, 0, 59)*60)
		if rest[0] == '+' {
			offset = -offset
		}
		seconds += offset
	default:
		ok = false
	}
	return seconds*1000 + int64(fraction), ok
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts the days of the Gregorian calendar, which is also
// used for years before it was. Years are taken to begin in March, so that
// the leap day is the last of its year.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	y := int64(year) + 400 // keeps the divisions away from negative numbers
	const epoch = 719468 + 146097
	return 365*y + y/4 - y/100 + y/400 + int64((153*(month-3)+2)/5+day-1) - epoch
}

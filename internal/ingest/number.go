package ingest

import (
	"math"
	"strconv"
)

// exact holds the powers of ten that a float64 holds exactly.
var exact = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// scanNumber reads the JSON number at b[i:] and returns its value and the
// index after it; false if there is no number in JSON's grammar. A number
// too large for a float64 comes back infinite.
func scanNumber(b []byte, i int) (v float64, end int, ok bool) {
	start := i
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	var mantissa uint64 // wraps beyond 19 digits, and is then not used
	first := i
	for i < len(b) && isDigit(b[i]) {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		return 0, i, false
	}
	exponent := 0
	if i < len(b) && b[i] == '.' {
		i++
		first = i
		for i < len(b) && isDigit(b[i]) {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		exponent = first - i
		if exponent == 0 {
			return 0, i, false
		}
		digits -= exponent
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		var e int
		if e, i, ok = scanExponent(b, i+1); !ok {
			return 0, i, false
		}
		exponent += e
	}
	// With an exact mantissa and an exact power of ten, one rounding gives
	// the nearest float64, which is what strconv computes the long way.
	if digits <= 19 && mantissa < 1<<53 && -22 <= exponent && exponent <= 22 {
		v = float64(mantissa)
		if exponent < 0 {
			v /= exact[-exponent]
		} else {
			v *= exact[exponent]
		}
		if negative {
			v = -v
		}
		return v, i, true
	}
	// The only error left is an overflow, which gives an infinity.
	v, _ = strconv.ParseFloat(string(b[start:i]), 64)
	return v, i, true
}

// scanExponent reads what follows the e of a number. Exponents are clamped:
// past 9999 they no longer make a difference.
func scanExponent(b []byte, i int) (e, end int, ok bool) {
	negative := false
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		negative = b[i] == '-'
		i++
	}
	first := i
	for i < len(b) && isDigit(b[i]) {
		e = min(e*10+int(b[i]-'0'), 9999)
		i++
	}
	if negative {
		e = -e
	}
	return e, i, i > first
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func finite(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }

// Package answer reads what a consumer means by its answer. HTTP status codes
// are its language, and the services of NATS speak it as well.
package answer

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tripline/tripline/router"
)

// Cause says what a status outside 2xx means for a trigger.
func Cause(status int) router.Cause {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return router.Rejected
	case http.StatusGone:
		return router.Gone
	case http.StatusTooManyRequests:
		return router.Throttled
	case http.StatusServiceUnavailable:
		return router.Unavailable
	}
	return router.Failed
}

// HasRetryAfter says whether a cause is one whose Retry-After is honoured.
func HasRetryAfter(c router.Cause) bool {
	return c == router.Throttled || c == router.Unavailable
}

// RetryAfter reads a Retry-After value: whole seconds, or an HTTP date, which
// is compared with the answer's own Date where there is one, so that the two
// clocks need not agree, else with now. The result is within 0..limit; what
// can't be read is 0.
func RetryAfter(value, date string, now time.Time, limit time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if seconds, ok := digits(value); ok {
		if seconds > int64(limit/time.Second) {
			return limit
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(date); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), limit)
}

// digits reads a decimal number without a sign; one too long for an int64 is
// its largest value.
func digits(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}

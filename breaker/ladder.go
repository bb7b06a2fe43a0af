package breaker

import (
	"math"
	"time"
)

// ladder says how long the breaker stays open.
type ladder struct {
	rung   int           // of the current open window, or the last one
	next   int           // rung of the next trip or reopening
	window time.Duration // length of the current or last open window
	until  time.Duration // its end; it only ever comes nearer
	asked  time.Duration // the consumer asked not to be called before this
	forced bool          // the window is an operator's

	hinted  bool // a hint ended the last open window
	pressed bool // an operator has brought its end nearer
	trust   bool // no hint was wrong since the last clean close
}

// ask notes a consumer's Retry-After.
func (l *ladder) ask(now, retryAfter time.Duration) {
	if retryAfter > 0 && retryAfter < Never-max(now, 0) {
		l.asked = max(l.asked, now+retryAfter)
	}
}

// climb starts the next rung's window.
func (l *ladder) climb(now time.Duration, c *Config) {
	// The exponent is clamped by the float's own range: too large a power is
	// +Inf, and Max is less.
	grown := float64(c.Base) * math.Pow(c.Factor, float64(l.next))
	window := time.Duration(min(float64(c.Max), grown) * (1 + c.Jitter*(2*c.Rand()-1)))
	if l.asked > now {
		window = max(window, min(l.asked-now, c.Max))
	}
	l.window, l.until = window, now+window
	l.rung = l.next
	l.next++
	l.forced = false
}

// force starts a window of an operator's choice. It is no rung.
func (l *ladder) force(now, window time.Duration) {
	l.window, l.until, l.forced = window, now+window, true
}

// shorten brings the window's end nearer, not before base has passed since it
// began, and not before the consumer's own wish. It returns whether it did.
func (l *ladder) shorten(now, began time.Duration, c *Config) bool {
	until := max(now, began+c.Base, min(l.asked, began+c.Max))
	if until >= l.until {
		return false
	}
	l.until = until
	return true
}

// clean forgets the climb and restores the trust in hints.
func (l *ladder) clean() { l.next, l.trust, l.hinted = 0, true, false }

package fallback

import (
	"time"

	"github.com/tripline/tripline/breaker"
)

// bucket holds the calls to a rate: tokens flow in, each call takes one. At
// most a tenth of a second's worth, but at least one, can be saved up.
type bucket struct {
	rate, size, tokens float64
	last               time.Duration
	short              bool // somebody was refused since the last take
}

func newBucket(rate float64) bucket {
	size := max(1, rate/10)
	return bucket{rate: rate, size: size, tokens: size}
}

func (b *bucket) take(now time.Duration) bool {
	if b.rate <= 0 {
		return true
	}
	if now > b.last {
		b.tokens = min(b.size, b.tokens+b.rate*(now-b.last).Seconds())
		b.last = now
	}
	b.short = b.tokens < 1
	if !b.short {
		b.tokens--
	}
	return !b.short
}

// giveBack undoes a take: no call was made.
func (b *bucket) giveBack() {
	if b.rate > 0 {
		b.tokens = min(b.size, b.tokens+1)
	}
}

// next returns when a refused call can be made.
func (b *bucket) next(now time.Duration) time.Duration {
	if !b.short {
		return breaker.Never
	}
	at := b.last + time.Duration((1-b.tokens)/b.rate*float64(time.Second)) + 1
	if at <= now { // it can; whoever wants to is woken now
		b.short = false
		return breaker.Never
	}
	return at
}

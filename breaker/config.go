package breaker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// None switches off what a zero field would give its default: it is a value
// for [Config.Jitter] and [Config.Settle].
const None = -1

// leaseGrace is what a call gets beyond its timeout before it is given up on.
const leaseGrace = time.Second

// minOver is how many calls must be over P99 before the P99 rule trips.
const minOver = 3

// Config says when a breaker trips and how it recovers. A zero field means
// its default, so the zero Config is a good one for a consumer whose ordinary
// latency lies well under 25 ms.
type Config struct {
	// P99 is the limit of the latency: a call that takes longer is slow, and
	// the breaker trips when more than 1 % are. 1 ms to 10 min, default 50 ms.
	// Set it to at least twice the consumer's ordinary 99th percentile.
	P99 time.Duration
	// Timeout is how long the caller lets a call run; [Breaker.Do] enforces
	// it. P99 to 1 h, default 4 x P99. A permit that is not reported within
	// Timeout + 1 s has failed and is taken back.
	Timeout time.Duration

	// Window is the sliding window of the trip rules, kept in 10 slices. 1 s
	// to 10 min, default 10 s.
	Window time.Duration
	// MinSamples is how many calls the window must hold before the P99 rule
	// applies. 1 to 1,000,000, default 100. The rule also wants at least 3
	// calls over P99.
	MinSamples int
	// RatioSamples is how many calls the window must hold before the slow and
	// the error ratio apply. 1 to 1,000,000, default 10.
	RatioSamples int
	// SlowPercent and ErrorPercent trip the breaker when at least that share
	// of the window's calls is over P99, or has failed. 1 to 100, default 50.
	SlowPercent, ErrorPercent int
	// Consecutive trips the breaker after so many bad (slow or failed) calls
	// in a row, whatever the window. 1 to 1,000, default 5.
	Consecutive int

	// Base and Max bound the open window: rung n of the ladder lasts
	// min(Max, Base x Factor^n), spread by Jitter. Base: 1 ms to 1 h, default
	// 1 s. Max: Base to 24 h, default 30 s (or Base, if that is longer).
	Base, Max time.Duration
	// Factor is the ladder's growth. 1 (none) to 10, default 2.
	Factor float64
	// Jitter spreads each open window by up to that share of it, both ways.
	// 0 to 0.5, default 0.2; [None] for none.
	Jitter float64
	// Settle is how long the breaker must stay closed before the ladder
	// starts from Base again. 0 to 1 h, default 10 s; [None] for none.
	Settle time.Duration

	// Probes is how many calls may be in flight while half-open. 1 to 3,
	// default 2; 3 only for a consumer that serves 3 cold calls at once
	// within P99.
	Probes int
	// Successes is how many consecutive healthy probes close the breaker. 1
	// to 100, default 5.
	Successes int

	// Rand returns numbers in [0, 1) for the jitter. It is called under the
	// breaker's lock. Default: math/rand/v2.
	Rand func() float64
	// Hooks tell what happens.
	Hooks Hooks
}

// ConfigError says which field of a [Config] or [RampConfig] is out of range.
type ConfigError struct {
	Field   string // as a configuration key: "p99", "min_samples"
	Value   any
	Allowed string // the range in words
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s %v is out of range: %s", e.Field, e.Value, e.Allowed)
}

// Validate returns nil, or the joined [*ConfigError]s of every field whose
// value is out of its range. Zero fields stand for their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	var r ranges
	r.duration("p99", c.P99, time.Millisecond, 10*time.Minute)
	r.duration("timeout", c.Timeout, c.P99, time.Hour)
	r.duration("window", c.Window, time.Second, 10*time.Minute)
	r.integer("min_samples", c.MinSamples, 1, 1_000_000)
	r.integer("ratio_samples", c.RatioSamples, 1, 1_000_000)
	r.integer("slow_percent", c.SlowPercent, 1, 100)
	r.integer("error_percent", c.ErrorPercent, 1, 100)
	r.integer("consecutive", c.Consecutive, 1, 1_000)
	r.duration("base", c.Base, time.Millisecond, time.Hour)
	r.duration("max", c.Max, c.Base, 24*time.Hour)
	r.float("factor", c.Factor, 1, 10)
	r.float("jitter", c.Jitter, 0, 0.5)
	r.duration("settle", c.Settle, 0, time.Hour)
	r.integer("probes", c.Probes, 1, 3)
	r.integer("successes", c.Successes, 1, 100)
	return errors.Join(r...)
}

// withDefaults returns c with its zero fields filled in and None resolved.
func (c Config) withDefaults() Config {
	fill(&c.P99, 50*time.Millisecond)
	fill(&c.Timeout, 4*c.P99)
	fill(&c.Window, 10*time.Second)
	fill(&c.MinSamples, 100)
	fill(&c.RatioSamples, 10)
	fill(&c.SlowPercent, 50)
	fill(&c.ErrorPercent, 50)
	fill(&c.Consecutive, 5)
	fill(&c.Base, time.Second)
	fill(&c.Max, max(30*time.Second, c.Base))
	fill(&c.Factor, 2)
	fill(&c.Jitter, 0.2)
	fill(&c.Settle, 10*time.Second)
	fill(&c.Probes, 2)
	fill(&c.Successes, 5)
	if c.Jitter == None {
		c.Jitter = 0
	}
	if c.Settle == None {
		c.Settle = 0
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ranges collects the fields that are out of range.
type ranges []error

func (r *ranges) add(ok bool, field string, value, low, high any) {
	if !ok {
		*r = append(*r, &ConfigError{field, value, fmt.Sprintf("%v to %v", low, high)})
	}
}

func (r *ranges) duration(field string, v, low, high time.Duration) {
	r.add(v >= low && v <= high, field, v, low, high)
}

func (r *ranges) integer(field string, v, low, high int) {
	r.add(v >= low && v <= high, field, v, low, high)
}

func (r *ranges) float(field string, v, low, high float64) {
	r.add(v >= low && v <= high, field, v, low, high) // false for NaN
}

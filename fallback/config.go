package fallback

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// OnFull says what happens to triggers for which the queue has no room.
type OnFull uint8

// The choices of OnFull.
const (
	// Block makes Offer wait: nothing is lost, but the partitions wait, and
	// with them the other consumers.
	Block OnFull = iota
	// Dead makes room: the oldest parked triggers become dead letters.
	Dead
	// Drop gives the trigger up. It is settled, and counted by Hooks.Dropped.
	Drop
)

// String returns "block", "dead" or "drop".
func (f OnFull) String() string {
	switch f {
	case Block:
		return "block"
	case Dead:
		return "dead"
	case Drop:
		return "drop"
	}
	return fmt.Sprintf("OnFull(%d)", uint8(f))
}

// Config says how an outlet treats its consumer. A zero field means its
// default.
type Config struct {
	// Partitions: [Outlet.Run] owns the partitions 0 to Partitions-1 from its
	// start on. Default 16; None for an outlet whose owner calls
	// [Outlet.Own] itself.
	Partitions int
	// Concurrency is the most calls in flight, 1 to 10,000, default 16.
	Concurrency int
	// MaxRate is the most calls per second, live and replayed together. 0:
	// no limit.
	MaxRate float64
	// Lane is how many triggers may wait in memory for their call, 1 to
	// 1,000,000, default 1,024.
	Lane int
	// MaxWaiting is how many bytes of triggers may wait in memory for their
	// park, or for the call in flight before them. Beyond it Offer waits.
	// Default 8 MiB.
	MaxWaiting int
	// MaxParks is how many parks may be unanswered at once, default 256.
	MaxParks int
	// MaxAttempts is how often a trigger is called while the breaker is
	// closed before it becomes a dead letter, 1 to 1,000, default 8.
	MaxAttempts int
	// MaxAge is how long a trigger may be parked: an older one becomes a dead
	// letter at its turn. Default 24 h; None for no limit.
	MaxAge time.Duration
	// MaxRetryAfter bounds what a consumer can ask a trigger to wait, default
	// 10 min.
	MaxRetryAfter time.Duration
	// OnFull says what to do when the queue is full.
	OnFull OnFull
	// ShutdownGrace is how long the triggers in memory are still delivered
	// after Run's context has ended, before they are parked. Default 5 s;
	// None for not at all.
	ShutdownGrace time.Duration
	// StopTimeout bounds what comes after the grace: calls that end, parks
	// that are acknowledged. Default 15 s.
	StopTimeout time.Duration
	// QueueTimeout bounds one call of the queue, default 5 s.
	QueueTimeout time.Duration
	// Health, if set, is asked while the breaker is open, so that it need
	// not wait for the end of its window.
	Health Health
	// HealthEvery is how often, spread by 20 %. Default 1 s.
	HealthEvery time.Duration
	// HealthTimeout bounds one check. Default: the breaker's P99.
	HealthTimeout time.Duration
	// Rand returns numbers in [0, 1), for that spread. Default: math/rand/v2.
	Rand func() float64
	// Holds, if set, says whether a partition is ours at this moment. It is
	// asked right before each call; when it says no, the partition is given
	// up as by [Outlet.Abandon].
	Holds func(partition int) bool
	// Gate, if set, is asked before each probe, beside the breaker: while it
	// says no, a half-open breaker makes none, and it is asked again every
	// 50 ms. It must not block, nor call the outlet.
	Gate func() bool
	// Hooks tell what happens.
	Hooks Hooks
}

// None switches off what a zero field of a [Config] would give its default.
const None = -1

// Validate returns nil, or the joined errors of the fields that are out of
// range.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	within := func(name string, v, low, high int) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("%s %d is out of range: %d to %d", name, v, low, high))
		}
	}
	within("partitions", c.Partitions, 0, 65536)
	within("concurrency", c.Concurrency, 1, 10_000)
	within("lane", c.Lane, 1, 1_000_000)
	within("max_waiting", c.MaxWaiting, 1, 1<<40)
	within("max_parks", c.MaxParks, 1, 100_000)
	within("max_attempts", c.MaxAttempts, 1, 1_000)
	if c.OnFull > Drop {
		errs = append(errs, fmt.Errorf("on_full %d is none of block, dead, drop", c.OnFull))
	}
	if !(c.MaxRate >= 0) {
		errs = append(errs, fmt.Errorf("max_rate %v is out of range: 0 or more per second", c.MaxRate))
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"max_age", c.MaxAge}, {"max_retry_after", c.MaxRetryAfter},
		{"shutdown_grace", c.ShutdownGrace}, {"stop_timeout", c.StopTimeout},
		{"queue_timeout", c.QueueTimeout}, {"health_every", c.HealthEvery}, {"health_timeout", c.HealthTimeout},
	} {
		if d.v < 0 {
			errs = append(errs, fmt.Errorf("%s %v is negative", d.name, d.v))
		}
	}
	return errors.Join(errs...)
}

// withDefaults returns c with its zero fields filled in and None resolved.
func (c Config) withDefaults() Config {
	c.Partitions = fill(c.Partitions, 16)
	c.Concurrency = fill(c.Concurrency, 16)
	c.Lane = fill(c.Lane, 1024)
	c.MaxWaiting = fill(c.MaxWaiting, 8<<20)
	c.MaxParks = fill(c.MaxParks, 256)
	c.MaxAttempts = fill(c.MaxAttempts, 8)
	c.MaxAge = fill(c.MaxAge, 24*time.Hour)
	c.MaxRetryAfter = fill(c.MaxRetryAfter, 10*time.Minute)
	c.ShutdownGrace = fill(c.ShutdownGrace, 5*time.Second)
	c.StopTimeout = fill(c.StopTimeout, 15*time.Second)
	c.QueueTimeout = fill(c.QueueTimeout, 5*time.Second)
	c.HealthEvery = fill(c.HealthEvery, time.Second)
	return c
}

// fill returns v, the default for 0, and 0 for None.
func fill[T ~int | ~int64](v, standard T) T {
	if v == None {
		return 0
	}
	return cmp.Or(v, standard)
}

// Option changes the configuration of a [New] outlet.
type Option func(*Config)

// With sets the whole configuration.
func With(c Config) Option { return func(to *Config) { *to = c } }

// WithHooks sets the hooks.
func WithHooks(h Hooks) Option { return func(to *Config) { to.Hooks = h } }

// WithHealth sets the health check.
func WithHealth(h Health) Option { return func(to *Config) { to.Health = h } }

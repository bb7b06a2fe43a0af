package geofence

import "time"

// Config holds the rules of a [Tracker]. The zero value is the default.
// Fences override ExitBufferM, Confirm, Dwell and MaxAccuracyM by properties
// of their own.
type Config struct {
	// MaxFuture is how far a fix may be ahead of the clock; 0 means 5 minutes.
	MaxFuture time.Duration
	// CrossMaxGap is the longest time between two fixes that may make a
	// cross; 0 means 2 minutes.
	CrossMaxGap time.Duration
	// SilentInitial drops the enter that a device's first fix would make; the
	// stay is recorded all the same.
	SilentInitial bool
	// ExitBufferM, in metres: a device has left only when it is farther than
	// this from the fence. 0 is off.
	ExitBufferM float64
	// Confirm is how many consecutive fixes must agree before a device has
	// entered or left; 0 and 1 are off. Where it is 2 or more there is no
	// cross, which rests on no fix inside at all.
	Confirm int
	// Dwell lists the durations after which a stay is told, rising, in whole
	// milliseconds.
	Dwell []time.Duration
	// MaxAccuracyM, in metres: fixes less accurate than this change nothing.
	// 0 is off. Fixes that don't say how accurate they are always count.
	MaxAccuracyM float64
	// Reorder is how long a fix may wait for older ones; 0 is off.
	Reorder time.Duration
	// MaxSpeed, in metres per second, is the speed gate's: a fix that implies
	// a higher speed is refused, until the third in a row that agrees with
	// the refused ones. 0 is off.
	MaxSpeed float64
	// Cross and Inside say whether these kinds are wanted: unused ones cost
	// nothing.
	Cross, Inside bool
	// InsideEvery is the shortest device time between two inside transitions
	// of one device and fence; 0 is one per fix.
	InsideEvery time.Duration
	// SilentAfter is how long a device may report nothing before it is
	// silent; 0 is off.
	SilentAfter time.Duration
	// ForgetAfter is how long a device may report nothing before its presence
	// is evicted, without any transition; 0 is off.
	ForgetAfter time.Duration
}

const (
	defaultMaxFuture   = 5 * time.Minute
	defaultCrossMaxGap = 2 * time.Minute
)

// exitBuffer, in metres, and the methods below give the rule that holds for a
// fence: its own, or else the configured one.
func (c *Config) exitBuffer(f *Fence) float64 {
	if f.rules != nil && f.rules.set&setExitBuffer != 0 {
		return f.rules.exitBufferM
	}
	return c.ExitBufferM
}

func (c *Config) confirm(f *Fence) int {
	if f.rules != nil && f.rules.set&setConfirm != 0 {
		return f.rules.confirm
	}
	return c.Confirm
}

func (c *Config) dwell(f *Fence) []time.Duration {
	if f.rules != nil && f.rules.set&setDwell != 0 {
		return f.rules.dwell
	}
	return c.Dwell
}

func (c *Config) maxAccuracy(f *Fence) float64 {
	if f.rules != nil && f.rules.set&setMaxAccuracy != 0 {
		return f.rules.maxAccuracyM
	}
	return c.MaxAccuracyM
}

// takes says whether the fix is accurate enough to be judged against f.
func (c *Config) takes(f *Fence, fix *Fix) bool {
	if fix.Has&HasAccuracy == 0 {
		return true
	}
	limit := c.maxAccuracy(f)
	return limit == 0 || fix.Accuracy <= limit
}

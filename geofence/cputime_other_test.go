//go:build !linux

package geofence_test

import "time"

var origin = time.Now()

// cpuTime is the time that has passed.
func cpuTime() time.Duration { return time.Since(origin) }

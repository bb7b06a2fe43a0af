package geofence_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the time that this thread has run: what others do on the machine
// doesn't count.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

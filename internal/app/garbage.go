package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Go collects garbage when the heap has doubled. While little is alive that is
// often: at full speed with 100,000 devices every second or two, and as long as
// a cycle takes, a tenth of a second, triggers are late. A small heap may
// therefore grow by garbageRoom before it is collected, up to five times what
// is alive; a large one doubles as ever.
const (
	garbageRoom    = 256 << 20 // bytes
	gcPercentLeast = 100       // Go's own
	gcPercentMost  = 400
	gcLookEvery    = time.Second
)

// gcPercent is how much garbage may gather, in percent of what is alive.
func gcPercent(alive uint64) int {
	return int(min(max(garbageRoom*100/max(alive, 1), gcPercentLeast), gcPercentMost))
}

// easeCollections fits the garbage collection to the heap until stop is
// called. Who sets GOGC decides alone; GOMEMLIMIT is kept in any case.
func easeCollections() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	before := debug.SetGCPercent(gcPercentMost)
	var running sync.WaitGroup
	running.Go(func() {
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		look := time.NewTicker(gcLookEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			metrics.Read(alive)
			debug.SetGCPercent(gcPercent(alive[0].Value.Uint64()))
		}
	})
	return func() {
		cancel()
		running.Wait()
		debug.SetGCPercent(before)
	}
}

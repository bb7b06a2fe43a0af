package app

import (
	"context"
	"fmt"
	"time"
)

// After a full disk the embedded server refuses to write until it is started
// again, however much room there is by then.
const (
	healthEvery = time.Second
	// sickFor is how long it must be unhealthy in a row before it is started
	// again: everything waits while it is.
	sickFor = 3 * time.Second
	// roomEnough is the free disk that it takes to go on.
	roomEnough = 16 << 20
	// A server that is sick again is started again after a pause that doubles
	// up to a bound.
	repairFirst = 10 * time.Second
	repairMost  = 5 * time.Minute
	// remindEvery is how often the log says that it waits for room.
	remindEvery = time.Minute
)

// repair starts the embedded server again when it is sick and has room to
// write. Connections come back, and what was not acknowledged is done again.
func (s *service) repair(ctx context.Context) error {
	if s.nats.embedded == nil {
		return nil
	}
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	var sick, repaired, reminded time.Time
	wait := repairFirst
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := time.Now()
		err := s.nats.embedded.Healthy()
		switch {
		case err == nil:
			sick = time.Time{}
			if now.Sub(repaired) > repairMost {
				wait = repairFirst
			}
			continue
		case sick.IsZero():
			sick = now
		}
		if now.Sub(sick) < sickFor || now.Sub(repaired) < wait && !repaired.IsZero() {
			continue
		}
		if free, known := s.nats.embedded.Free(); known && free < roomEnough {
			if now.Sub(reminded) >= remindEvery {
				s.log.Error("the disk of the embedded NATS server is full: make room; then it is started again by itself", "free_bytes", free, "cause", err)
				reminded = now
			}
			continue
		}
		if !repaired.IsZero() {
			wait = min(2*wait, repairMost)
		}
		s.log.Warn("the embedded NATS server is started again", "cause", err)
		if err := s.nats.embedded.Restart(ctx); err != nil {
			s.log.Error("the embedded NATS server could not be started again; it is tried once more", "in", wait, "err", err)
		}
		sick, repaired = time.Time{}, time.Now()
	}
}

// sickServer says why the embedded server is not well, and what follows.
func (s *service) sickServer(err error) string {
	if free, known := s.nats.embedded.Free(); known && free < roomEnough {
		return fmt.Sprintf("the disk of the embedded NATS server is full (%d MiB free): make room, then it is started again by itself: %v", free>>20, err)
	}
	return fmt.Sprintf("the embedded NATS server is not healthy and will be started again: %v", err)
}

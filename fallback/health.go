package fallback

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tripline/tripline/breaker"
)

// Health asks a consumer, beside its triggers, whether it is well.
type Health interface {
	// Check returns nil if it is. It returns soon after ctx ends.
	Check(ctx context.Context) error
}

// checkHealth asks while the breaker is open. Every pass from the second in a
// row on is a hint to the breaker; a new open window starts a new row.
func (o *Outlet) checkHealth(ctx context.Context) {
	passes := 0
	var until time.Duration
	for {
		spread := 0.8 + 0.4*o.cfg.Rand()
		pause := time.NewTimer(time.Duration(float64(o.cfg.HealthEvery) * spread))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		s := o.breaker.Snapshot(o.Now())
		if s.State != breaker.Open {
			passes = 0
			continue
		}
		if s.Since != until {
			until, passes = s.Since, 0
		}
		if o.check(ctx) != nil {
			passes = 0
			continue
		}
		if passes++; passes >= 2 {
			o.breaker.Hint(o.Now())
			o.lookAgain()
		}
	}
}

// check makes one check; a panic in it is a failure.
func (o *Outlet) check(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.HealthTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the health check panicked: %v", v)
			if hook := o.cfg.Hooks.Panicked; hook != nil {
				hook(v, debug.Stack())
			}
		}
	}()
	err = o.cfg.Health.Check(ctx)
	return errors.Join(err, ctx.Err())
}

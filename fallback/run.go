package fallback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tripline/tripline/breaker"
)

// Run does the outlet's work until ctx ends. Then offers are refused, what
// waits in memory is still delivered for ShutdownGrace, and the rest is
// parked; Run returns when every park has been acknowledged and every call
// has ended. The error says that this took longer than StopTimeout: what is
// left then is unsettled and comes again after the next start.
//
// Run is called once.
func (o *Outlet) Run(ctx context.Context) error {
	background, cancelBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelBackground()
	calls, cancelCalls := context.WithCancel(background)
	defer cancelCalls()
	l := &life{ctx: background, calls: calls}
	o.mu.Lock()
	if o.life != nil {
		o.mu.Unlock()
		return errors.New("the outlet has been run before")
	}
	o.life = l
	o.unlockAndAct()

	l.wg.Go(func() { o.clock(background) })
	l.wg.Go(func() { o.parker(background) })
	l.wg.Go(func() { o.sweep(background) })
	l.wg.Go(func() { o.ownAll(ctx) })
	if o.cfg.Health != nil {
		l.wg.Go(func() { o.checkHealth(background) })
	}

	<-ctx.Done()
	err := o.stop(cancelCalls)
	o.mu.Lock()
	o.closed = true
	o.work.Broadcast()
	o.mu.Unlock()
	cancelBackground()
	cancelCalls()
	if err != nil {
		return err // a call that does not end would keep us for ever
	}
	l.wg.Wait()
	return nil
}

// stop empties the lanes and parks the rest.
func (o *Outlet) stop(cancelCalls func()) error {
	o.mu.Lock()
	o.core.stop()
	empty := o.await((*core).empty)
	o.unlockAndAct()
	grace := time.NewTimer(o.cfg.ShutdownGrace)
	defer grace.Stop()
	select {
	case <-empty:
	case <-grace.C:
	}

	o.mu.Lock()
	o.core.evacuateAll(o.Now())
	quiet := o.await(func(c *core) bool { return c.quiet() && o.allTold() })
	o.unlockAndAct()
	cancelCalls()
	limit := time.NewTimer(o.cfg.StopTimeout)
	defer limit.Stop()
	select {
	case <-quiet:
		return nil
	case <-limit.C:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-quiet:
		return nil
	default:
	}
	return fmt.Errorf("stopping took longer than %v: %d calls did not end, %d triggers are not parked",
		o.cfg.StopTimeout, o.core.busy, o.core.outCount)
}

// ownAll takes over the configured partitions.
func (o *Outlet) ownAll(ctx context.Context) {
	for p := range o.cfg.Partitions {
		for {
			err := o.Own(ctx, p)
			if err == nil || ctx.Err() != nil {
				break
			}
			o.queueError(fmt.Sprintf("taking over partition %d", p), err)
			pause := time.NewTimer(loadDelay)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}
}

// clock wakes the breaker and the core when time alone decides something.
func (o *Outlet) clock(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			o.tick()
		case <-o.rearm:
		}
		o.mu.Lock()
		at := o.armed
		o.mu.Unlock()
		if at == breaker.Never {
			timer.Stop()
		} else {
			timer.Reset(max(0, at-o.Now()))
		}
	}
}

// tick applies what is due.
func (o *Outlet) tick() {
	o.mu.Lock()
	o.armed = breaker.Never // a call that begins from now on arms us anew
	o.mu.Unlock()
	now := o.Now()
	next := o.breaker.Poll(now)
	o.mu.Lock()
	o.look(now)
	next = min(next, o.core.poll(now))
	o.armed = min(o.armed, next)
	o.work.Broadcast()
	o.unlockAndAct()
}

// parker hands parks to the queue, in the order in which they were decided.
func (o *Outlet) parker(ctx context.Context) {
	var parks []park
	for {
		o.mu.Lock()
		parks, o.core.out.parks = o.core.out.parks, parks[:0]
		o.mu.Unlock()
		for _, p := range parks {
			o.queue.Park(p.e.trigger, p.e.reason, func(_ uint64, err error) {
				if err != nil && !errors.Is(err, ErrDuplicate) && !errors.Is(err, ErrFull) {
					o.queueError("parking a trigger", err)
				}
				o.step(func(c *core, now time.Duration) task {
					if err == nil {
						o.stats.parks.add(now)
					}
					c.parked(now, p, err)
					return task{}
				})
			})
		}
		if len(parks) > 0 {
			clear(parks)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-o.hand:
		}
	}
}

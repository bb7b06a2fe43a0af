// Package fallback protects a consumer, and the router from it. An [Outlet]
// stands around a sink: it calls it through a circuit breaker, keeps the order
// of each device, parks durably in a [Queue] what can't be delivered now, and
// replays it, paced, once the consumer has proved healthy.
package fallback

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/router"
)

// Outlet hands the triggers of one consumer to its sink. It implements
// [router.Outlet]. Its methods may be called from any goroutine.
//
// The rules are in its core, which decides purely; the outlet carries out
// what that says and tells it how it went.
type Outlet struct {
	sink    router.Sink
	breaker *breaker.Breaker
	queue   Queue
	cfg     Config // with defaults, never written to
	limits  breaker.Config
	origin  time.Time // of the outlet's clock

	throttled atomic.Int64 // answers in a row that asked for fewer calls
	acting    atomic.Int64 // goroutines that are about to call a settled or a hook
	awaited   atomic.Bool  // there are waiters

	rearm chan struct{} // tells the clock that it is armed too late
	hand  chan struct{} // tells the parker that there is something to park

	mu      sync.Mutex // guards all below; never held over a call, a hook or a settled
	core    *core
	work    sync.Cond // a task may be there; or closed
	idle    int       // workers that wait for one
	workers int       // that there are, started as they are needed
	life    *life     // nil before Run
	armed   time.Duration
	waiters []waiter
	closed  bool // Run has ended: nothing is done any more
	stats   stats
}

// waiter waits for the core to be in some state.
type waiter struct {
	until func(*core) bool
	done  chan struct{}
}

// New returns an outlet around a sink. It does nothing until [Outlet.Run].
// It panics on a configuration that [Config.Validate] refuses, so that it can
// be part of an expression.
func New(sink router.Sink, b *breaker.Breaker, q Queue, opts ...Option) *Outlet {
	var cfg Config
	for _, o := range opts {
		o(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		panic(fmt.Sprintf("fallback.New: %v", err))
	}
	o := &Outlet{
		sink: sink, breaker: b, queue: q, cfg: cfg.withDefaults(), limits: b.Config(),
		origin: time.Now(),
		rearm:  make(chan struct{}, 1),
		hand:   make(chan struct{}, 1),
		armed:  breaker.Never,
	}
	if o.cfg.Rand == nil {
		o.cfg.Rand = rand.Float64
	}
	if o.cfg.HealthTimeout == 0 {
		o.cfg.HealthTimeout = o.limits.P99
	}
	settle := o.limits.Settle
	if settle == 0 {
		settle = breaker.None
	}
	ramp := breaker.NewRamp(breaker.RampConfig{
		Start: min(o.limits.Probes, o.cfg.Concurrency), Max: o.cfg.Concurrency,
		P99: o.limits.P99, Settle: settle, Ordinary: b.Ordinary,
	})
	o.core = newCore(&o.cfg, ramp, b.Ordinary)
	o.work.L = &o.mu
	return o
}

// Now is the outlet's clock, which is also that of its breaker.
func (o *Outlet) Now() time.Duration { return time.Since(o.origin) }

// Breaker returns the outlet's breaker. Its times are those of [Outlet.Now].
func (o *Outlet) Breaker() *breaker.Breaker { return o.breaker }

// Queue returns the outlet's queue.
func (o *Outlet) Queue() Queue { return o.queue }

// overhead is what a trigger costs in memory beyond its strings and body.
const overhead = 384

// Offer implements [router.Outlet]. Triggers of a partition that is not owned
// yet wait in memory.
func (o *Outlet) Offer(ctx context.Context, t router.Trigger, settled func()) {
	o.Accept(ctx, t, settled)
}

// Accept is [Outlet.Offer], and tells whether the outlet has taken the
// trigger. It has not if ctx has ended or the outlet is stopping: then
// settled will never be called, and the trigger can go to a successor.
func (o *Outlet) Accept(ctx context.Context, t router.Trigger, settled func()) bool {
	e := &entry{trigger: t, settled: settled, size: overhead + len(t.Body) + len(t.ID) + len(t.Device)}
	for {
		o.mu.Lock()
		if o.closed || o.core.stopping || ctx.Err() != nil {
			o.mu.Unlock()
			return false
		}
		if o.core.offer(o.Now(), e) {
			o.unlockAndAct()
			return true
		}
		o.stats.blocked++
		room := o.await(func(c *core) bool {
			return c.stopping || c.outside == 0 || c.outside+e.size <= c.cfg.MaxWaiting
		})
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		o.mu.Lock()
		o.stats.blocked--
		o.mu.Unlock()
	}
}

// await returns a channel that is closed once the core is in that state. It
// is called with the lock.
func (o *Outlet) await(until func(*core) bool) <-chan struct{} {
	w := waiter{until, make(chan struct{})}
	o.awaited.Store(true) // before the question, so that no change slips by
	if until(o.core) {
		close(w.done)
	} else {
		o.waiters = append(o.waiters, w)
	}
	return w.done
}

var effectsPool = sync.Pool{New: func() any { return new(effects) }}

// unlockAndAct gives up the lock after a change of the core, and does what
// follows from it.
func (o *Outlet) unlockAndAct() {
	o.spread()
	c := o.core
	if (o.idle > 0 || o.workers < o.cfg.Concurrency) && c.more() {
		o.wakeWorker()
	}
	if !c.out.pending() {
		o.mu.Unlock()
		return
	}
	out := effectsPool.Get().(*effects)
	out.settled, c.out.settled = c.out.settled, out.settled
	out.told, c.out.told = c.out.told, out.told
	o.acting.Add(1)
	o.mu.Unlock()
	for _, settled := range out.settled {
		settled()
	}
	for _, tell := range out.told {
		tell()
	}
	clear(out.settled)
	clear(out.told)
	out.settled, out.told = out.settled[:0], out.told[:0]
	effectsPool.Put(out)
	if o.acting.Add(-1) == 0 && o.awaited.Load() {
		o.mu.Lock()
		o.tellWaiters()
		o.mu.Unlock()
	}
}

// allTold says that no settled and no hook is to be called any more. It is
// called with the lock.
func (o *Outlet) allTold() bool { return o.acting.Load() == 0 && !o.core.out.pending() }

// spread tells those who wait, other than workers, of a change of the core. It
// is called with the lock.
func (o *Outlet) spread() {
	if at := o.core.wakeAt(o.Now); at < o.armed {
		o.arm(at)
	}
	if len(o.waiters) > 0 {
		o.tellWaiters()
	}
	if len(o.core.out.parks) > 0 {
		select {
		case o.hand <- struct{}{}:
		default:
		}
	}
}

// wakeWorker has one more worker look for a task. It is called with the lock.
func (o *Outlet) wakeWorker() {
	switch {
	case o.idle > 0:
		o.work.Signal()
	case o.life != nil && !o.closed && o.workers < o.cfg.Concurrency:
		o.workers++
		o.startWorker(task{})
	}
}

func (o *Outlet) tellWaiters() {
	kept := o.waiters[:0]
	for _, w := range o.waiters {
		if w.until(o.core) {
			close(w.done)
		} else {
			kept = append(kept, w)
		}
	}
	clear(o.waiters[len(kept):])
	o.waiters = kept
	o.awaited.Store(len(kept) > 0)
}

// arm has the clock look at the core and the breaker at that time. It is
// called with the lock.
func (o *Outlet) arm(at time.Duration) {
	o.armed = at
	select {
	case o.rearm <- struct{}{}:
	default:
	}
}

// look tells the core what the breaker's state is. It is called with the
// lock, after everything that may change that.
func (o *Outlet) look(now time.Duration) {
	o.core.observe(now, o.breaker.State())
}

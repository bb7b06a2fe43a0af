package lease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Keeper holds this process's leases.
type Keeper struct {
	cfg    Config
	bucket *bucket
	origin time.Time

	// Read by Holds from anywhere. holds says which partitions are ours, as
	// long as the deadline has not passed.
	holds    []atomic.Bool
	deadline atomic.Pointer[deadline]
	renewed  chan struct{} // the deadline has moved

	// Owned by the goroutine of Run.

	core        *core
	sent        time.Duration // the last heartbeat that was confirmed
	registerRev uint64
	ended       chan ended
	work        sync.WaitGroup // what is being served

	mu    sync.Mutex // guards all below
	stays map[int]*engagement
	view  View
}

// deadline is when our leases stop to be good, by two clocks: one that never
// jumps but may stand still while the machine sleeps, and one that may jump
// but does not stand still.
type deadline struct{ steady, wall time.Time }

func (d *deadline) passed(now time.Time) bool {
	return !now.Before(d.steady) || !now.Round(0).Before(d.wall)
}

// ended says that a partition's Serve has returned.
type ended struct {
	partition int
	stay      *engagement
	err       error
}

// View is what a replica knows of the service.
type View struct {
	Self     string
	Valid    bool      // our leases can be relied on
	Replicas []Replica // all of them, ourselves too, by id
	Owners   []string  // replica ids by partition, "" for nobody
}

// Open makes the bucket if there is none. The Keeper does nothing before Run.
func Open(ctx context.Context, js jetstream.JetStream, cfg Config) (*Keeper, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	if err := cfg.Timing.check(); err != nil {
		return nil, err
	}
	if cfg.Home == nil {
		cfg.Home = ThisHome
	}
	b, err := openBucket(ctx, js, cfg)
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		cfg: cfg, bucket: b, origin: time.Now(),
		holds:   make([]atomic.Bool, cfg.Partitions),
		renewed: make(chan struct{}, 1),
		core:    newCore(cfg.Timing, cfg.Partitions, cfg.Home()),
		sent:    -cfg.Renew,
		ended:   make(chan ended, cfg.Partitions),
		stays:   map[int]*engagement{},
	}
	k.deadline.Store(&deadline{})
	return k, nil
}

func (k *Keeper) now() time.Duration { return time.Since(k.origin) }

// Valid says whether our leases can be relied on at this moment.
func (k *Keeper) Valid() bool { return !k.deadline.Load().passed(time.Now()) }

// Holds says whether a partition is ours at this moment. It is cheap, so that
// whatever can't be taken back asks right before it acts.
func (k *Keeper) Holds(partition int) bool {
	return k.holds[partition].Load() && k.Valid()
}

// View returns what is known.
func (k *Keeper) View() View {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.view
	v.Valid = k.Valid()
	return v
}

// Run takes part until ctx ends, then hands our partitions over and leaves.
// When it returns, nothing that it served is running any more.
func (k *Keeper) Run(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { k.watch(background) })
	defer watch.Wait()
	defer cancel()
	k.join()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			k.retire(background)
			return nil
		case e := <-k.ended:
			k.took(e)
			look.Reset(0)
		case <-look.C:
			k.step(background)
			look.Reset(k.cfg.Look)
		}
	}
}

// retire hands our partitions over, and leaves.
func (k *Keeper) retire(ctx context.Context) {
	k.core.leaving, k.sent = true, -k.cfg.Renew
	k.handOverAll()
	limit := time.NewTimer(k.cfg.HandOver)
	defer limit.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	for k.serving() {
		select {
		case e := <-k.ended:
			k.took(e)
			look.Reset(0)
		case <-look.C:
			k.step(ctx)
			look.Reset(k.cfg.Look)
		case <-limit.C:
			k.loseAll()
			k.work.Wait()
			for k.serving() {
				k.took(<-k.ended)
			}
		}
	}
	k.step(ctx) // the last that ended is still in the register
	k.leave(ctx)
}

// join takes a new id. Ids rise with the time of joining, so that what can't
// be divided evenly goes to those that have been there for longer.
func (k *Keeper) join() {
	k.core.joined(fmt.Sprintf("%011x-%s", time.Now().UnixMilli(), nuid.Next()[12:]))
}

// watch gives everything up when our leases end, whatever else is waited for.
func (k *Keeper) watch(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.renewed:
		case <-timer.C:
		}
		d, now := k.deadline.Load(), time.Now()
		if d.passed(now) {
			k.expire()
			timer.Stop()
			continue
		}
		// The wall clock may have to be looked at again.
		timer.Reset(min(d.steady.Sub(now), time.Second))
	}
}

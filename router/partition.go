package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/geofence"
)

// Consumer is a configured downstream: what it wants, and where that goes.
type Consumer struct {
	Name   string
	Match  *Match // nil wants everything
	Outlet Outlet
}

// PartitionConfig says what a partition is made of. Durations that are zero
// take their defaults.
type PartitionConfig struct {
	// Partition is its number, 0..P-1.
	Partition int
	// Namespace becomes the source of the triggers' bodies.
	Namespace string
	Source    Source
	Store     Store
	Fences    *geofence.Index
	// Versions finds the fence versions that saved presences name; nil finds
	// none.
	Versions FenceVersions
	Tracker  geofence.Config
	// Consumers is shared with whoever reloads the configuration: a swapped
	// slice is in force from the next message on. Nobody writes to a slice
	// that has been stored.
	Consumers *atomic.Pointer[[]Consumer]
	// Core takes the wall clock for the partition's clock, and stores no
	// ticks: nothing is read twice, so nothing need be repeatable.
	Core bool

	// FlushAfter is how long a presence that no transition saved may stay
	// unsaved; 0 means 30 s, with Core 5 min. A restart reads about as far
	// back; with Core, which reads nothing twice, that is how old the position
	// of a device that made no transition may be after a crash.
	FlushAfter time.Duration
	// CommitEvery is the shortest time between two commits, of some partitions
	// up to a half more; 0 means 500 ms, with Core 2 s. The triggers of as long
	// come again after a crash; with Core, which reads nothing twice, it is what
	// is forgotten of them.
	CommitEvery time.Duration
	// ProgressEvery is how often progress without any presence is committed;
	// 0 means 1 s, with Core 10 s.
	ProgressEvery time.Duration
	// CommitTimeout bounds one try of a commit; 0 means 10 s.
	CommitTimeout time.Duration
	// TickAfter is how long nothing may arrive, while timers are pending,
	// before a tick is stored; 0 means 1 s.
	TickAfter time.Duration
	// IdleTick is the same without pending timers, so that a dead reader
	// does not go unnoticed on a quiet partition, and its progress does not
	// keep the log from being trimmed; 0 means 15 s.
	IdleTick time.Duration
	// TickTimeout is how long after a tick was stored the reader counts as
	// dead if nothing was read; 0 means 5 s.
	TickTimeout time.Duration

	Hooks Hooks
}

func (c PartitionConfig) withDefaults() PartitionConfig {
	flushAfter, commitEvery, progressEvery := 30*time.Second, 500*time.Millisecond, time.Second
	if c.Core {
		flushAfter, commitEvery, progressEvery = 5*time.Minute, 2*time.Second, 10*time.Second
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.FlushAfter, flushAfter},
		{&c.CommitEvery, commitEvery},
		{&c.ProgressEvery, progressEvery},
		{&c.CommitTimeout, 10 * time.Second},
		{&c.TickAfter, time.Second},
		{&c.IdleTick, 15 * time.Second},
		{&c.TickTimeout, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.Consumers == nil {
		c.Consumers = new(atomic.Pointer[[]Consumer])
	}
	return c
}

// Partition owns some of the devices: it judges their fixes in order, hands
// the triggers to the outlets, and keeps the progress.
//
// One goroutine, the loop, does all that needs the tracker. Another, the
// committer, stores what the ledger between them holds, so that a loop that
// waits inside an Offer does not stop the progress of what is settled. A
// third one keeps the reader going.
type Partition struct {
	cfg    PartitionConfig
	ledger *ledger

	// Owned by the loop, and by Close after it.

	tracker     *geofence.Tracker
	devices     *devices
	pos         uint64 // position of the last message judged
	clock       int64  // unix milliseconds; never falls
	replayUntil uint64 // no saved presence contains fixes beyond this
	turn        turn
	scratch     []geofence.Transition
	names       []string
	savedNow    []saved
	encoded     []byte
	watch       watch

	// Between the goroutines.

	batches  chan *Batch
	commands chan func(ctx context.Context)
	ticked   chan error // the outcome of the tick that is out
	readFrom atomic.Uint64
	stopRead atomic.Pointer[context.CancelCauseFunc]
	ticks    sync.WaitGroup // the goroutine that stores a tick
	stopped  chan struct{}  // closed when Run returns
}

// NewPartition returns a partition that does nothing until Run.
func NewPartition(cfg PartitionConfig) *Partition {
	p := &Partition{
		cfg:      cfg.withDefaults(),
		ledger:   newLedger(),
		devices:  newDevices(),
		batches:  make(chan *Batch),
		commands: make(chan func(context.Context)),
		stopped:  make(chan struct{}),
		ticked:   make(chan error, 1),
	}
	p.tracker = geofence.NewTracker(cfg.Fences, cfg.Tracker)
	p.turn.p = p
	return p
}

// Run claims the partition, loads what was saved, and judges messages until
// ctx ends (nil) or it can't go on: the partition belongs to somebody else
// (ErrFenced), or what was saved can't be read. It is called once. When it
// has returned nothing of the partition is running; triggers that outlets
// still hold may settle, and Close saves the rest.
func (p *Partition) Run(ctx context.Context) error {
	defer close(p.stopped)
	if err := p.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("partition %d: %w", p.cfg.Partition, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.read(gctx) })
	g.Go(func() error { return p.commit(gctx) })
	g.Go(func() error { return p.loop(gctx) })
	err := g.Wait()
	p.ticks.Wait()
	if ctx.Err() != nil && !errors.Is(err, ErrFenced) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.cfg.Partition, err)
	}
	return nil
}

// start claims the partition and restores the presences. Devices inside
// fences that have changed since they were saved are judged again here,
// before anything is read: the tracker then knows only current versions, and
// the transitions go behind what their devices have had (see device.place)
// and before what the replay will bring them. They hold the offset where it
// is; their presences are not saved before they are settled, so a crash in
// between judges them again, with the same ids.
//
// Nothing that is read below the offset is suppressed. With unchanged fences
// there is nothing to suppress, because the presence after each transition
// was saved before the offset passed it. With changed fences a fix below the
// offset may be the first to meet a new fence, and that enter would be lost.
func (p *Partition) start(ctx context.Context) error {
	s, err := p.claim(ctx)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	version := func(string, uint64) *geofence.Fence { return nil }
	if p.cfg.Versions != nil {
		version = p.cfg.Versions.Version
	}
	for name, enc := range s.Presences {
		d := p.devices.get(name)
		rest, err := d.readPlace(enc)
		if err == nil {
			err = p.tracker.Restore(d.name, rest, version)
		}
		if err != nil {
			return fmt.Errorf("saved presence of device %q: %w", name, err)
		}
		p.replayUntil = max(p.replayUntil, p.tracker.Seq(d.name))
	}
	p.ledger.begin(s)
	p.clock = s.Clock
	p.pos = max(s.ReplayFrom, 1) - 1
	p.readFrom.Store(s.ReplayFrom)
	p.watch.begin(time.Now())
	if len(s.Presences) > 0 {
		p.refence(ctx)
	}
	// A replay runs through time again. The clock of the last commit would
	// fire timers before their turn.
	if !p.cfg.Core {
		p.clock = 0
	}
	p.publish()
	return nil
}

// claim claims the partition, as often as it takes: a store that doesn't
// answer at the moment is no reason to give up, no more than it is later.
func (p *Partition) claim(ctx context.Context) (Saved, error) {
	retry := commitRetryFirst
	for {
		s, err := p.cfg.Store.Claim(ctx, p.cfg.Partition)
		if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
			return s, err
		}
		p.cfg.Hooks.claimFailed(err)
		if !pause(ctx, retry) {
			return s, err
		}
		retry = min(2*retry, commitRetryMost)
	}
}

// loop judges what arrives and does all else that needs the tracker.
func (p *Partition) loop(ctx context.Context) error {
	timer := time.NewTimer(p.nextWake(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-p.batches:
			p.judgeBatch(ctx, b)
		case command := <-p.commands:
			command(ctx)
		case err := <-p.ticked:
			p.tickEnded(err)
		case <-timer.C:
			p.onTimer(ctx)
		}
		p.settle()
		timer.Reset(p.nextWake(time.Now()))
	}
}

// nextWake is how long the loop may sleep: a quarter of what the watch has to
// notice, and in core mode no longer than until the next timer is due.
func (p *Partition) nextWake(now time.Time) time.Duration {
	wake := min(p.cfg.TickAfter, p.cfg.FlushAfter) / 4
	if p.cfg.Core {
		if due, ok := p.tracker.Next(); ok {
			wake = min(wake, max(0, time.UnixMilli(due).Sub(now)))
		}
	}
	return wake
}

func (p *Partition) onTimer(ctx context.Context) {
	if p.cfg.Core {
		p.advanceCore(ctx, time.Now())
		return
	}
	select {
	case b := <-p.batches: // the reader is well, it was the loop that waited
		p.judgeBatch(ctx, b)
	default:
		p.watchReader(ctx, time.Now())
	}
}

// settle takes from the ledger what has become durable, flushes what has been
// unsaved for long, and tells the ledger how far the loop has come.
func (p *Partition) settle() {
	now := time.Now()
	p.takeSaved(now)
	p.flush(now.Add(-p.cfg.FlushAfter), flushAtOnce)
	p.publish()
}

func (p *Partition) takeSaved(now time.Time) {
	p.savedNow = p.ledger.takeSaved(p.savedNow)
	for _, s := range p.savedNow {
		p.devices.saved(s.dev, s.contained, s.claims, now)
	}
}

func (p *Partition) publish() {
	next := p.pos + 1
	if p.pos == 0 {
		next = 0 // nothing was read yet: a restart begins at the beginning, wherever that is
	}
	p.ledger.publish(loopState{
		next:    next,
		floor:   p.devices.floor(next),
		clock:   p.clock,
		tracked: p.tracker.Len(),
		unsaved: len(p.devices.unsaved),
	})
}

// flushAtOnce bounds how many presences one settle encodes, so that a flush
// of very many devices does not hold up the fixes.
const flushAtOnce = 256

// flush asks for presences to be saved whose oldest change was before.
func (p *Partition) flush(before time.Time, most int) {
	for range most {
		d := p.devices.due(before)
		if d == nil {
			return
		}
		presence, contained := p.presence(d)
		if contained == 0 {
			p.devices.enqueue(d, time.Now()) // its first fix still waits
			continue
		}
		p.ledger.put(d, presence, contained)
	}
}

// presence encodes the device as it is now, and says up to which position it
// contains all changes. It is nil for a device without a judged fix.
func (p *Partition) presence(d *device) ([]byte, uint64) {
	p.encoded = d.appendPlace(p.encoded[:0])
	enc, ok := p.tracker.AppendPresence(p.encoded, d.name)
	p.encoded = enc[:0]
	contained := p.pos
	if p.waits(d) {
		contained = min(contained, p.tracker.Seq(d.name)) // the rest is in the reorder buffer
	}
	if !ok {
		return nil, contained
	}
	return append([]byte(nil), enc...), contained
}

// waits says whether a fix of the device may be in the reorder buffer.
func (p *Partition) waits(d *device) bool {
	reorder := p.cfg.Tracker.Reorder.Milliseconds()
	return reorder > 0 && d.stored+reorder > p.clock && p.tracker.Seq(d.name) < d.fix
}

// Close saves what is left after Run has returned and the outlets are
// drained: the presences that have changed, and progress up to the first
// trigger that is not settled. It gives up when ctx ends.
func (p *Partition) Close(ctx context.Context) error {
	// Twice: devices whose triggers settled last can be flushed only once
	// the presences that go with those are saved.
	for range 2 {
		p.takeSaved(time.Now())
		p.flush(time.Now(), len(p.devices.byName))
		if err := p.drain(ctx); err != nil {
			return fmt.Errorf("partition %d: last commit: %w", p.cfg.Partition, err)
		}
	}
	return nil
}

// drain commits until nothing is left to commit.
func (p *Partition) drain(ctx context.Context) error {
	for {
		p.takeSaved(time.Now())
		p.publish()
		more, err := p.commitNow(ctx, true)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !more {
			return nil
		}
	}
}

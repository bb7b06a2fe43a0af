package router

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrReaderSilent is the reason of a restart after a tick that was stored and
// not read back.
var ErrReaderSilent = errors.New("a tick was stored and not read back")

// A reader that breaks off is started again after a pause that doubles up to
// a bound, and begins anew once it has read something.
const (
	rereadFirst = 50 * time.Millisecond
	rereadMost  = 5 * time.Second
)

// read keeps the source's reader going until ctx ends. A new one starts
// behind the last batch that was judged; the loop skips what it has already.
func (p *Partition) read(ctx context.Context) error {
	wait := rereadFirst
	for {
		from := p.readFrom.Load()
		readCtx, cancel := context.WithCancelCause(ctx)
		p.stopRead.Store(&cancel)
		err := p.cfg.Source.Read(readCtx, p.cfg.Partition, from, p.batches)
		reason := context.Cause(readCtx)
		cancel(nil)
		if ctx.Err() != nil {
			return nil
		}
		if reason == nil {
			reason = err
		}
		if reason == nil {
			reason = errors.New("the reader ended by itself")
		}
		p.cfg.Hooks.readerRestarted(reason)
		if p.readFrom.Load() != from {
			wait = rereadFirst
		}
		if !pause(ctx, wait) {
			return nil
		}
		wait = min(2*wait, rereadMost)
	}
}

// watch is what the loop knows of the reader's health.
type watch struct {
	lastHeard time.Time // when the last batch came, or the reader was started
	lastTick  time.Time // when the last tick was begun
	storing   bool      // a tick is being stored
	storedAt  time.Time // when the tick that is out was stored; zero: none is
	ticks     uint64
}

func (w *watch) begin(now time.Time) { w.lastHeard, w.lastTick = now, now }

// heard: any message shows that the reader lives.
func (w *watch) heard(now time.Time) { w.lastHeard, w.storedAt = now, time.Time{} }

// watchReader stores a tick when it has been quiet for too long, and has the
// reader rebuilt if a tick does not come back.
func (p *Partition) watchReader(ctx context.Context, now time.Time) {
	w := &p.watch
	if !w.storedAt.IsZero() {
		if now.Sub(w.storedAt) >= p.cfg.TickTimeout {
			w.heard(now)
			if stop := p.stopRead.Load(); stop != nil {
				(*stop)(fmt.Errorf("nothing was read for %v: %w", p.cfg.TickTimeout, ErrReaderSilent))
			}
		}
		return
	}
	limit := p.cfg.IdleTick
	if p.tracker.Pending() {
		limit = p.cfg.TickAfter
	}
	if w.storing || now.Sub(w.lastHeard) < limit || now.Sub(w.lastTick) < p.cfg.TickAfter {
		return
	}
	w.storing, w.lastTick = true, now
	w.ticks++
	nonce := strconv.FormatUint(w.ticks, 10)
	p.ticks.Go(func() {
		tickCtx, cancel := context.WithTimeout(ctx, p.cfg.TickTimeout)
		defer cancel()
		p.ticked <- p.cfg.Source.Tick(tickCtx, p.cfg.Partition, nonce)
	})
}

// tickEnded notes that the tick is stored, or was not.
func (p *Partition) tickEnded(err error) {
	w := &p.watch
	w.storing = false
	if err != nil {
		p.cfg.Hooks.tickFailed(err)
		return
	}
	if w.lastHeard.Before(w.lastTick) {
		w.storedAt = time.Now()
	}
}

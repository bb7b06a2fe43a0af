package router

import (
	"context"
	"errors"
	"time"
)

// A commit that failed is tried again after a pause that doubles up to a
// bound.
const (
	commitRetryFirst = 50 * time.Millisecond
	commitRetryMost  = 2 * time.Second
)

// commit stores what the ledger holds, one step at a time, until ctx ends. A
// step whose fate is unknown goes back to the ledger and is stored again,
// with what has come to it. ErrFenced ends it at once.
func (p *Partition) commit(ctx context.Context) error {
	progress := time.NewTicker(p.cfg.ProgressEvery)
	defer progress.Stop()
	// Each partition has a rhythm of its own: commits that fell together would
	// keep doing so, and the server would have to do them all at once.
	rhythm := p.cfg.CommitEvery + p.cfg.CommitEvery*time.Duration(p.cfg.Partition%8)/16
	for {
		all := false
		select {
		case <-ctx.Done():
			return nil
		case <-p.ledger.wake:
		case <-progress.C:
			all = true
		}
		if _, err := p.commitNow(ctx, all); err != nil {
			return err
		}
		if !pause(ctx, rhythm) {
			return nil
		}
	}
}

// commitNow commits one step, as often as it takes; false if there is nothing
// to commit, or ctx ended before it was done.
func (p *Partition) commitNow(ctx context.Context, all bool) (bool, error) {
	retry := commitRetryFirst
	for {
		st, ok := p.ledger.take(all)
		if !ok {
			return false, nil
		}
		err := p.commitStep(ctx, st)
		if err == nil || errors.Is(err, ErrFenced) {
			return err == nil, err
		}
		all = true
		if !pause(ctx, retry) {
			return false, nil
		}
		retry = min(2*retry, commitRetryMost)
	}
}

// commitStep stores a step, or puts it back into the ledger.
func (p *Partition) commitStep(ctx context.Context, st step) error {
	progress := Progress{
		Offset:     st.offset,
		ReplayFrom: st.floor,
		Position:   st.position,
		Clock:      st.clock,
		Presences:  make([]DevicePresence, 0, len(st.saves)),
	}
	for name, s := range st.saves {
		progress.Presences = append(progress.Presences, DevicePresence{Device: name, Encoded: s.presence})
	}
	begun := time.Now()
	tryCtx, cancel := context.WithTimeout(ctx, p.cfg.CommitTimeout)
	err := p.cfg.Store.Commit(tryCtx, p.cfg.Partition, progress)
	cancel()
	if err != nil {
		p.ledger.restore(st)
	} else {
		p.ledger.committed(st)
	}
	p.cfg.Hooks.committed(time.Since(begun), len(progress.Presences), err)
	return err
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

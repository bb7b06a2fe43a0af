package state

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// presences loads what is saved of the devices. For a part of the stream the
// server looks at all of it, so that many partitions that each read their own
// make it look as many times: those that are loaded at about the same time, as
// at a start, share one reading of everything.
type presences struct {
	s *Store

	mu   sync.Mutex // guards next, and the partitions of that round
	next *loadRound // gathers; nil if none does
}

// gatherFor is how long a reading waits for others to share it.
const gatherFor = 20 * time.Millisecond

// loadRound is one reading and those who share it.
type loadRound struct {
	found map[int]*foundPresences // by partition
	done  chan struct{}           // closed after err is set
	err   error
}

// foundPresences is what is saved of the devices of one partition.
type foundPresences struct {
	byDevice map[string][]byte
	removed  []uint64 // sequences of what stands for removed ones
}

// load reads the presences of a partition. If several load at the same time
// and the one that reads for all is told to stop, the others get its error.
func (p *presences) load(ctx context.Context, partition int) (*foundPresences, error) {
	own := &foundPresences{byDevice: map[string][]byte{}}
	p.mu.Lock()
	r := p.next
	lead := r == nil
	if lead {
		r = &loadRound{found: map[int]*foundPresences{}, done: make(chan struct{})}
		p.next = r
	}
	r.found[partition] = own
	p.mu.Unlock()
	if !lead {
		select {
		case <-r.done:
			return own, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-time.After(gatherFor):
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.next = nil
	p.mu.Unlock()
	r.err = p.read(ctx, r)
	close(r.done)
	return own, r.err
}

// read fills a round: by going through everything, or where few share it
// through what each has.
func (p *presences) read(ctx context.Context, r *loadRound) error {
	if len(r.found)*4 >= p.s.cfg.Partitions && len(r.found) > 1 {
		return p.scan(ctx, r, p.s.prefix+"presence.>")
	}
	group, ctx := errgroup.WithContext(ctx)
	for partition := range r.found {
		group.Go(func() error { return p.scan(ctx, r, p.s.presencePrefix(partition)+">") })
	}
	return group.Wait()
}

// scan takes what fits a filter into the round. Scans at the same time have
// no partition in common.
func (p *presences) scan(ctx context.Context, r *loadRound, filter string) error {
	prefix := p.s.prefix + "presence."
	return p.s.scan(ctx, filter, func(msg jetstream.Msg, seq uint64) error {
		number, name, _ := strings.Cut(msg.Subject()[len(prefix):], ".")
		partition, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("subject %s: %q is no partition", msg.Subject(), number)
		}
		found := r.found[partition]
		if found == nil {
			return nil
		}
		if len(msg.Data()) == 0 {
			found.removed = append(found.removed, seq)
			return nil
		}
		id, err := untoken(name)
		if err != nil {
			return fmt.Errorf("subject %s: %w", msg.Subject(), err)
		}
		found.byDevice[id] = msg.Data()
		return nil
	})
}

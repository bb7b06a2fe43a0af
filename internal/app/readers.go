package app

import (
	"context"
	"sync"
	"time"
)

const (
	// idleAfter is how long a partition may stand still before it gets a tick,
	// and silentAfter how long it may take to judge it.
	idleAfter   = 15 * time.Second
	silentAfter = 30 * time.Second
)

// readers watches that the partitions judge what is stored for them. One that
// stands still may have nothing to do: it is given a tick, which it must
// judge. The reader mends itself; this is what tells when it can't.
type readers struct {
	mu   sync.Mutex // guards seen
	seen map[int]standing
}

// standing is where a partition was when it was last seen to move.
type standing struct {
	position uint64
	since    time.Time
	ticked   time.Time // zero: no tick was stored since
}

// look notes where the partitions are. tick stores one for a partition.
func (r *readers) look(ctx context.Context, now time.Time, positions map[int]uint64, tick func(ctx context.Context, partition int) error) {
	for _, number := range r.note(now, positions) {
		if tick(ctx, number) != nil {
			continue // NATS is away: readiness has its own check of that
		}
		r.mu.Lock()
		if s, ok := r.seen[number]; ok {
			s.ticked = now
			r.seen[number] = s
		}
		r.mu.Unlock()
	}
}

// note returns the partitions that want a tick.
func (r *readers) note(now time.Time, positions map[int]uint64) (idle []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[int]standing, len(positions))
	for number, position := range positions {
		s, ok := r.seen[number]
		if !ok || s.position != position {
			s = standing{position: position, since: now}
		}
		seen[number] = s
		if s.ticked.IsZero() && now.Sub(s.since) >= idleAfter {
			idle = append(idle, number)
		}
	}
	r.seen = seen // what runs elsewhere now is forgotten
	return idle
}

// silent returns the partition that has left a tick unjudged for the longest
// time; false if none has for too long.
func (r *readers) silent(now time.Time) (partition int, since time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, s := range r.seen {
		if s.ticked.IsZero() {
			continue
		}
		if waited := now.Sub(s.ticked); waited >= silentAfter && waited > since {
			partition, since, ok = number, waited, true
		}
	}
	return partition, since, ok
}

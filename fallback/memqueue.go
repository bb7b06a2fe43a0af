package fallback

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tripline/tripline/router"
)

// dedupeFor is how long a MemQueue remembers what it has stored.
const dedupeFor = 2 * time.Minute

// MemQueue is a [Queue] in memory: for tests, and for those who can afford to
// lose what is parked when the process ends. It is an [Inspector] too.
type MemQueue struct {
	maxBytes uint64
	maxDead  int

	mu     sync.Mutex // guards all below
	seq    uint64
	bytes  uint64
	items  map[uint64]Item
	slots  map[Slot][]uint64 // Seqs in order
	stored map[string]memory // by trigger id
	swept  time.Time
	dead   []DeadLetter
	closed bool
}

// memory is what a MemQueue remembers of a park.
type memory struct {
	seq uint64
	at  time.Time
}

// NewMemQueue returns an empty queue that holds maxBytes of items and maxDead
// dead letters; 0 means no bound.
func NewMemQueue(maxBytes uint64, maxDead int) *MemQueue {
	return &MemQueue{
		maxBytes: maxBytes, maxDead: maxDead,
		items: map[uint64]Item{}, slots: map[Slot][]uint64{}, stored: map[string]memory{},
	}
}

// Close makes every further step fail with [ErrClosed].
func (q *MemQueue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// Park implements [Queue]. It calls done before it returns.
func (q *MemQueue) Park(t router.Trigger, reason Reason, done func(uint64, error)) {
	done(q.park(t, reason))
}

func (q *MemQueue) park(t router.Trigger, reason Reason) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.forget(now)
	size := len(t.Body) + len(t.ID) + len(t.Device) + 100
	if q.closed {
		return 0, ErrClosed
	}
	// What an operator sends again is no repeat of what it was.
	if m, ok := q.stored[t.ID]; ok && !t.Redriven && now.Sub(m.at) < dedupeFor {
		return m.seq, ErrDuplicate
	}
	if q.maxBytes > 0 && q.bytes+uint64(size) > q.maxBytes {
		return 0, ErrFull
	}
	q.seq++
	slot := Slot{t.Partition, t.Slot}
	t.Read = time.Time{}
	q.items[q.seq] = Item{Trigger: t, Seq: q.seq, Parked: now, Reason: reason, Size: size}
	q.slots[slot] = append(q.slots[slot], q.seq)
	q.bytes += uint64(size)
	if !t.Redriven {
		q.stored[t.ID] = memory{q.seq, now}
	}
	return q.seq, nil
}

// forget drops the memories that are too old, now and then.
func (q *MemQueue) forget(now time.Time) {
	if now.Sub(q.swept) < dedupeFor {
		return
	}
	q.swept = now
	for id, m := range q.stored {
		if now.Sub(m.at) >= dedupeFor {
			delete(q.stored, id)
		}
	}
}

// Head implements [Queue].
func (q *MemQueue) Head(ctx context.Context, s Slot, after uint64) (Item, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return Item{}, false, err
	}
	seqs := q.slots[s]
	i, found := slices.BinarySearch(seqs, after)
	if found {
		i++
	}
	if i == len(seqs) {
		return Item{}, false, nil
	}
	return q.items[seqs[i]], true, nil
}

// refuse says why a call can't be served.
func (q *MemQueue) refuse(ctx context.Context) error {
	if q.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Delete implements [Queue].
func (q *MemQueue) Delete(ctx context.Context, seq uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return err
	}
	item, ok := q.items[seq]
	if !ok {
		return nil
	}
	delete(q.items, seq)
	q.bytes -= uint64(item.Size)
	slot := Slot{item.Trigger.Partition, item.Trigger.Slot}
	i, _ := slices.BinarySearch(q.slots[slot], seq)
	if i == 0 {
		q.slots[slot] = q.slots[slot][1:]
	} else {
		q.slots[slot] = slices.Delete(q.slots[slot], i, i+1)
	}
	if len(q.slots[slot]) == 0 {
		delete(q.slots, slot)
	}
	return nil
}

// Table implements [Queue].
func (q *MemQueue) Table(ctx context.Context, partition int) (map[Slot]int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return nil, err
	}
	table := map[Slot]int{}
	for s, seqs := range q.slots {
		if s.Partition == partition {
			table[s] = len(seqs)
		}
	}
	return table, nil
}

// Oldest implements [Queue].
func (q *MemQueue) Oldest(ctx context.Context) (Item, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return Item{}, false, err
	}
	first := uint64(0)
	for _, seqs := range q.slots {
		if first == 0 || seqs[0] < first {
			first = seqs[0]
		}
	}
	item, ok := q.items[first]
	return item, ok, nil
}

// Usage implements [Queue].
func (q *MemQueue) Usage() Usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Usage{Items: len(q.items), Bytes: q.bytes, MaxBytes: q.maxBytes}
}

// Bury implements [Queue].
func (q *MemQueue) Bury(ctx context.Context, d DeadLetter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return err
	}
	repeat := func(old DeadLetter) bool { return old.Trigger.ID == d.Trigger.ID && old.Died.Equal(d.Died) }
	if slices.ContainsFunc(q.dead, repeat) {
		return nil
	}
	if q.maxDead > 0 && len(q.dead) >= q.maxDead {
		return ErrFull
	}
	q.seq++
	d.Seq = q.seq
	q.dead = append(q.dead, d)
	return nil
}

// Items implements [Inspector].
func (q *MemQueue) Items(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		q.mu.Lock()
		err := q.refuse(ctx)
		var all []Item
		for _, item := range q.items {
			if f.accepts(&item.Trigger, item.Seq, item.Parked) {
				all = append(all, item)
			}
		}
		q.mu.Unlock()
		slices.SortFunc(all, func(a, b Item) int { return cmp.Compare(a.Seq, b.Seq) })
		list(all, err, yield)
	}
}

// Dead implements [Inspector].
func (q *MemQueue) Dead(ctx context.Context, f Filter) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		q.mu.Lock()
		err := q.refuse(ctx)
		var all []DeadLetter
		for _, d := range q.dead {
			if f.accepts(&d.Trigger, d.Seq, d.Died) {
				all = append(all, d)
			}
		}
		q.mu.Unlock()
		list(all, err, yield)
	}
}

// list yields a copy that was taken under the lock, or the error.
func list[T any](all []T, err error, yield func(T, error) bool) {
	if err != nil {
		var zero T
		yield(zero, err)
		return
	}
	for _, v := range all {
		if !yield(v, nil) {
			return
		}
	}
}

// accepts says whether a filter lets an entry pass.
func (f *Filter) accepts(t *router.Trigger, seq uint64, since time.Time) bool {
	return seq > f.After &&
		(f.Fence == "" || f.Fence == t.Fence) &&
		(f.Device == "" || f.Device == t.Device) &&
		(f.OlderThan == 0 || time.Since(since) >= f.OlderThan)
}

// DeleteDead implements [Inspector].
func (q *MemQueue) DeleteDead(ctx context.Context, seq uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.refuse(ctx); err != nil {
		return err
	}
	q.dead = slices.DeleteFunc(q.dead, func(d DeadLetter) bool { return d.Seq == seq })
	return nil
}

var (
	_ Queue     = (*MemQueue)(nil)
	_ Inspector = (*MemQueue)(nil)
)

package live

// ring keeps the newest entries, up to a limit.
type ring[T any] struct {
	limit   int
	entries []T
	first   int // index of the oldest, once entries is full
	dropped int
}

func (r *ring[T]) push(v T) {
	if len(r.entries) < r.limit {
		r.entries = append(r.entries, v)
		return
	}
	r.entries[r.first] = v
	r.first = (r.first + 1) % r.limit
	r.dropped++
}

// where returns the entries that pass, the oldest first.
func (r *ring[T]) where(pass func(T) bool) []T {
	kept := []T{}
	for i := range r.entries {
		if v := r.entries[(r.first+i)%len(r.entries)]; pass(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// oldest and newest are the entries at the ends; nil without any.
func (r *ring[T]) oldest() *T { return r.at(0) }
func (r *ring[T]) newest() *T { return r.at(len(r.entries) - 1) }

func (r *ring[T]) at(i int) *T {
	if len(r.entries) == 0 {
		return nil
	}
	return &r.entries[(r.first+i)%len(r.entries)]
}

// drain appends the entries to dst, the oldest first, empties the ring, and
// returns how many were dropped since the last drain.
func (r *ring[T]) drain(dst []T) ([]T, int) {
	dst = append(dst, r.entries[r.first:]...)
	dst = append(dst, r.entries[:r.first]...)
	n := r.dropped
	clear(r.entries)
	r.entries, r.first, r.dropped = r.entries[:0], 0, 0
	return dst, n
}

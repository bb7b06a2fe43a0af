package geofence

import "iter"

// Change is a set of edits to an [Index].
type Change struct {
	Put    []*Fence // added, or replaced by id
	Delete []string // ids; unknown ones are ignored
}

// Index holds the fences: many readers, one writer at a time.
type Index struct{}

// NewIndex returns an index of the fences. A duplicate id is an error.
func NewIndex(fences ...*Fence) (*Index, error) { return &Index{}, nil }

// Apply makes all edits of c visible at once, or none. An id that is named
// twice in c is an error.
func (ix *Index) Apply(c Change) error { return nil }

// Snapshot returns the newest version of the set. It never changes.
func (ix *Index) Snapshot() *Snapshot { return &Snapshot{} }

// Snapshot is an immutable set of fences, safe for concurrent use.
type Snapshot struct{}

// Match appends the fences that contain the point, sorted by id. Only
// geometry counts: altitude and schedule are the tracker's. It doesn't
// allocate if dst has room.
func (s *Snapshot) Match(lat, lon float64, dst []*Fence) []*Fence { return dst }

// Fence returns the fence with the id, or nil.
func (s *Snapshot) Fence(id string) *Fence { return nil }

// Len is the number of fences.
func (s *Snapshot) Len() int { return 0 }

// All yields the fences, sorted by id.
func (s *Snapshot) All() iter.Seq[*Fence] { return func(func(*Fence) bool) {} }

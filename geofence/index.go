package geofence

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/rtree"
)

// Change is a set of edits to an [Index].
type Change struct {
	Put    []*Fence // added, or replaced by id
	Delete []string // ids; unknown ones are ignored
}

// Index holds the fences. Any number of goroutines may take snapshots while
// others apply changes: readers never wait.
type Index struct {
	newest atomic.Pointer[Snapshot]

	mu sync.Mutex // one writer at a time; guards tree and pieces
	// tree is the writer's own. A reader gets a copy, which shares its nodes:
	// the next write copies the nodes that it touches.
	tree *rtree.RTreeG[*item]
	// pieces are what is in the tree in place of items of many parts.
	pieces map[*item][]item
}

// NewIndex returns an index of the fences. A duplicate id is an error.
func NewIndex(fences ...*Fence) (*Index, error) {
	ix := &Index{tree: &rtree.RTreeG[*item]{}, pieces: map[*item][]item{}}
	ix.newest.Store(&Snapshot{tree: ix.tree.Copy(), change: &change{}})
	if err := ix.Apply(Change{Put: fences}); err != nil {
		return nil, err
	}
	return ix, nil
}

// Snapshot returns the newest version of the set.
func (ix *Index) Snapshot() *Snapshot { return ix.newest.Load() }

// Apply makes all edits of c visible at once; on an error none of them. An id
// that is named twice in c is an error.
func (ix *Index) Apply(c Change) error {
	edits, err := c.sorted()
	if err != nil {
		return err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	old := ix.newest.Load()
	next := old.edit(edits)
	if len(edits)*4 > next.roll.n {
		// So many edits make a poor tree of the old one, at a higher cost.
		ix.tree = &rtree.RTreeG[*item]{}
		clear(ix.pieces)
		for _, leaf := range next.roll.leaves {
			for _, it := range leaf {
				ix.insert(it)
			}
		}
	} else {
		for _, e := range edits {
			if it := old.roll.find(e.id); it != nil {
				ix.remove(it)
			}
			if e.put != nil {
				ix.insert(e.put)
			}
		}
	}
	next.tree = ix.tree.Copy()
	next.change = &change{ids: make([]string, len(edits))}
	for i, e := range edits {
		next.change.ids[i] = e.id
	}
	old.change.next.Store(next.change)
	ix.newest.Store(next)
	return nil
}

func (ix *Index) insert(it *item) {
	pieces := it.pieces()
	if len(pieces) == 0 {
		ix.place(it, ix.tree.Insert)
		return
	}
	ix.pieces[it] = pieces
	for i := range pieces {
		ix.place(&pieces[i], ix.tree.Insert)
	}
}

func (ix *Index) remove(it *item) {
	pieces := ix.pieces[it]
	if len(pieces) == 0 {
		ix.place(it, ix.tree.Delete)
		return
	}
	delete(ix.pieces, it)
	for i := range pieces {
		ix.place(&pieces[i], ix.tree.Delete)
	}
}

// place inserts or deletes the item under each of its boxes.
func (ix *Index) place(it *item, do func(min, max [2]float64, it *item)) {
	for _, b := range boxesOf(it.shape, make([]box, 0, 2)) {
		do([2]float64{b.min.x, b.min.y}, [2]float64{b.max.x, b.max.y}, it)
	}
}

// edit is one fence's: put is nil if it is deleted.
type edit struct {
	id  string
	put *item
}

// sorted returns the edits by id.
func (c Change) sorted() ([]edit, error) {
	edits := make([]edit, 0, len(c.Put)+len(c.Delete))
	items := make([]item, len(c.Put)) // side by side, for the search's sake
	for i, f := range c.Put {
		if f == nil || f.shape == nil {
			return nil, errors.New("put a fence that is not from ParseFences")
		}
		items[i] = itemOf(f)
		edits = append(edits, edit{f.ID, &items[i]})
	}
	for _, id := range c.Delete {
		edits = append(edits, edit{id, nil})
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.id, b.id) })
	for i := 1; i < len(edits); i++ {
		if edits[i].id == edits[i-1].id {
			return nil, fmt.Errorf("fence %q is named twice", edits[i].id)
		}
	}
	return edits, nil
}

// change is a link of the chain of all changes: a tracker keeps the one that
// it has seen, and walks on from there. Links that no tracker keeps are
// garbage.
type change struct {
	ids  []string // put or deleted, sorted
	next atomic.Pointer[change]
}

// Snapshot is an immutable set of fences, safe for concurrent use.
type Snapshot struct {
	tree   *rtree.RTreeG[*item]
	roll   roll
	change *change // the one that made it
	// coarsest is the worst accuracy that a fence's own rule takes, in metres.
	coarsest float64
}

// edit returns a snapshot, still without a tree, with the edits made.
func (s *Snapshot) edit(edits []edit) *Snapshot {
	next := &Snapshot{roll: s.roll.edit(edits)}
	next.coarsest = s.coarsest
	for _, e := range edits {
		if e.put != nil {
			next.coarsest = max(next.coarsest, e.put.fence.coarsest())
		}
	}
	return next
}

func search(sorted []*Fence, id string) (int, bool) {
	return slices.BinarySearchFunc(sorted, id, func(f *Fence, id string) int { return cmp.Compare(f.ID, id) })
}

// Match appends the fences that contain the point, in degrees, sorted by id.
// Only geometry counts: altitude and schedule are the [Tracker]'s. It doesn't
// allocate if dst has room.
func (s *Snapshot) Match(lat, lon float64, dst []*Fence) []*Fence {
	from := len(dst)
	p := point{lon, lat}
	dst = s.search(p, dst)
	if onSeam(p) {
		dst = s.search(opposite(p), dst)
	}
	if found := dst[from:]; len(found) > 1 {
		sortByID(found)
		dst = dst[:from+len(slices.Compact(found))] // a fence may have been found twice
	}
	return dst
}

func (s *Snapshot) search(p point, dst []*Fence) []*Fence {
	at := [2]float64{p.x, p.y}
	s.tree.Search(at, at, func(_, _ [2]float64, it *item) bool {
		if it.contains(p) {
			dst = append(dst, it.fence)
		}
		return true
	})
	return dst
}

// sortByID sorts a few fences fast and many well.
func sortByID(fs []*Fence) {
	if len(fs) > 12 {
		slices.SortFunc(fs, func(a, b *Fence) int { return cmp.Compare(a.ID, b.ID) })
		return
	}
	for i := 1; i < len(fs); i++ {
		for j := i; j > 0 && fs[j].ID < fs[j-1].ID; j-- {
			fs[j], fs[j-1] = fs[j-1], fs[j]
		}
	}
}

// Fence returns the fence with the id, or nil.
func (s *Snapshot) Fence(id string) *Fence {
	if it := s.roll.find(id); it != nil {
		return it.fence
	}
	return nil
}

// Len is the number of fences.
func (s *Snapshot) Len() int { return s.roll.n }

// All yields the fences, sorted by id.
func (s *Snapshot) All() iter.Seq[*Fence] { return s.roll.all() }

// touching calls yield for the fences whose boxes touch b, some of them more
// than once; yield returns false to go without the rest. b's x may leave
// -180..180.
func (s *Snapshot) touching(b box, yield func(*Fence) bool) {
	for _, dx := range frames {
		c := b.shift(dx)
		if c.max.x < -180 || c.min.x > 180 {
			continue
		}
		s.tree.Search([2]float64{c.min.x, c.min.y}, [2]float64{c.max.x, c.max.y},
			func(_, _ [2]float64, it *item) bool { return yield(it.fence) })
	}
}

package geofence

import (
	"cmp"
	"iter"
	"slices"
)

// roll lists items by id. It is immutable: an edited one shares the leaves
// that no edit touches, so that a small edit of a long list is cheap.
type roll struct {
	leaves [][]*item // none is empty
	n      int
}

const leafItems = 512

// leaf is the number of the leaf that the id belongs to.
func (r *roll) leaf(id string) int {
	i, found := slices.BinarySearchFunc(r.leaves, id, func(leaf []*item, id string) int {
		return cmp.Compare(leaf[0].fence.ID, id)
	})
	if !found && i > 0 {
		i--
	}
	return i
}

func (r *roll) find(id string) *item {
	if r.n == 0 {
		return nil
	}
	leaf := r.leaves[r.leaf(id)]
	if i, found := inLeaf(leaf, id); found {
		return leaf[i]
	}
	return nil
}

func inLeaf(leaf []*item, id string) (int, bool) {
	return slices.BinarySearchFunc(leaf, id, func(it *item, id string) int { return cmp.Compare(it.fence.ID, id) })
}

func (r *roll) all() iter.Seq[*Fence] {
	return func(yield func(*Fence) bool) {
		for _, leaf := range r.leaves {
			for _, it := range leaf {
				if !yield(it.fence) {
					return
				}
			}
		}
	}
}

// edit returns the list with the edits, which are sorted by id, made.
func (r *roll) edit(edits []edit) roll {
	next := roll{leaves: make([][]*item, 0, len(r.leaves)+1+len(edits)/leafItems)}
	for i, leaf := range r.leaves {
		n := len(edits)
		if i+1 < len(r.leaves) {
			n, _ = slices.BinarySearchFunc(edits, r.leaves[i+1][0].fence.ID, func(e edit, id string) int {
				return cmp.Compare(e.id, id)
			})
		}
		if n == 0 {
			next.leaves = append(next.leaves, leaf)
			next.n += len(leaf)
			continue
		}
		next.add(merge(leaf, edits[:n]))
		edits = edits[n:]
	}
	next.add(merge(nil, edits))
	return next
}

// add appends items, cut into leaves.
func (r *roll) add(items []*item) {
	r.n += len(items)
	for len(items) > 0 {
		n := len(items)
		if n > leafItems {
			n = min(leafItems, (n+1)/2)
		}
		r.leaves = append(r.leaves, items[:n:n])
		items = items[n:]
	}
}

// merge returns the leaf with the edits made.
func merge(leaf []*item, edits []edit) []*item {
	out := make([]*item, 0, len(leaf)+len(edits))
	for _, e := range edits {
		i, found := inLeaf(leaf, e.id)
		out = append(out, leaf[:i]...)
		if found {
			i++
		}
		leaf = leaf[i:]
		if e.put != nil {
			out = append(out, e.put)
		}
	}
	return append(out, leaf...)
}

package router

import (
	"context"
	"errors"

	"github.com/tripline/tripline/geofence"
)

// ErrFenced says that another owner has taken the partition over. Nothing of
// the commit was stored; whoever sees it stops at once.
var ErrFenced = errors.New("partition taken over by another owner")

// Saved is what a partition starts from.
type Saved struct {
	// Offset: everything below it is settled.
	Offset uint64
	// ReplayFrom is the position of the oldest fix that no saved presence
	// contains. Reading starts here. 0: from the beginning.
	ReplayFrom uint64
	// Clock is the stream time of the last commit, unix milliseconds.
	Clock int64
	// Presences holds each device's encoded presence.
	Presences map[string][]byte
}

// Progress is one step forward, stored whole or not at all.
type Progress struct {
	Offset, ReplayFrom uint64
	// Position is that of the newest message that was judged: nothing in
	// Presences knows of a later one.
	Position  uint64
	Clock     int64
	Presences []DevicePresence
}

// DevicePresence is a presence to save; a nil Encoded removes it.
type DevicePresence struct {
	Device  string
	Encoded []byte
}

// Store keeps the progress of the partitions.
type Store interface {
	// Claim makes the caller the partition's owner: every commit of an
	// earlier owner that has not been stored by now fails with ErrFenced.
	// Then it loads what was saved.
	Claim(ctx context.Context, partition int) (Saved, error)
	// Commit stores a step of a claimed partition. When it returns nil the
	// step is durable. ErrFenced: somebody else owns the partition. Any other
	// error means "not known"; the caller commits again, with at least the
	// same presences. One call per partition at a time.
	Commit(ctx context.Context, partition int, p Progress) error
}

// FenceVersions keeps every version of a fence that a presence may name.
type FenceVersions interface {
	// Version returns a version, or nil if none of the fence is stored. A
	// store that keeps only the last one returns that for an earlier
	// revision too, but as a fence of its own that carries the revision
	// asked for: so the tracker sees that the stay was judged with another
	// version, and judges it again.
	Version(id string, revision uint64) *geofence.Fence
}

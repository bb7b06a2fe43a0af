package geofence

import (
	"encoding/json"
	"fmt"
)

// Fence is a named area with properties. It is made by [ParseFences] and is
// immutable: what its exported fields refer to must not be written to.
type Fence struct {
	// ID is unique within an [Index].
	ID string
	// Name is the property `name`, or "".
	Name string
	// Tags are the property `tags`.
	Tags []string
	// Props is the feature's properties as given, a JSON object, or nil.
	Props json.RawMessage
	// Revision numbers the stored version of the fence, so that two versions
	// of one id can be told apart later. The caller sets it with
	// [Fence.WithRevision]; 0 is unknown.
	Revision uint64
}

// FenceError says what is wrong with one feature of a fence file.
type FenceError struct {
	ID           string // of the fence, if it has one
	Index        int    // of the feature in its collection, from 0; -1 outside any
	Line, Column int    // of the place in the file, from 1; column in bytes
	Msg          string
}

func (e *FenceError) Error() string {
	return fmt.Sprintf("%d:%d: fence %q: %s", e.Line, e.Column, e.ID, e.Msg)
}

// ParseFences reads a GeoJSON FeatureCollection or Feature. All problems are
// joined into one error, each a *[FenceError]; then there are no fences.
func ParseFences(data []byte) ([]*Fence, error) { return nil, nil }

// MarshalFeature returns the fence as a GeoJSON feature in canonical form:
// parsed again it gives an equal fence. Revision is not part of it.
func (f *Fence) MarshalFeature() ([]byte, error) { return nil, nil }

// Digest is the SHA-256 of the canonical feature. Fences with equal digests
// judge alike and carry the same properties.
func (f *Fence) Digest() [32]byte { return [32]byte{} }

// WithRevision returns a copy of the fence that carries rev.
func (f *Fence) WithRevision(rev uint64) *Fence {
	c := *f
	c.Revision = rev
	return &c
}

// Package fencekv keeps fences in a NATS key-value bucket, where they can
// change at run time: one key per fence, its value a GeoJSON feature.
package fencekv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/geofence"
)

// BucketName is the name of a namespace's bucket.
func BucketName(namespace string) string { return strings.ToUpper(namespace) + "_FENCES" }

// Bucket holds fences. It is safe for concurrent use.
type Bucket struct {
	kv   jetstream.KeyValue
	name string
}

// Open makes the bucket if there is none. maxBytes bounds it; the server
// reserves that much.
func Open(ctx context.Context, js jetstream.JetStream, namespace string, maxBytes int64, replicas int) (*Bucket, error) {
	name := BucketName(namespace)
	kv, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "Tripline: fences, one GeoJSON feature per key",
			MaxBytes: maxBytes, Storage: jetstream.FileStorage, Replicas: replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bucket %s: %w", name, err)
	}
	return &Bucket{kv, name}, nil
}

// Put stores a fence and returns the bucket's revision with it.
func (b *Bucket) Put(ctx context.Context, f *geofence.Fence) (uint64, error) {
	data, err := f.MarshalFeature()
	if err != nil {
		return 0, err
	}
	rev, err := b.kv.Put(ctx, Key(f.ID), data)
	if errors.Is(err, nats.ErrMaxPayload) {
		return 0, fmt.Errorf("fence %q takes %d bytes, more than the NATS server lets through: raise its max_payload, or put the fence into a file", f.ID, len(data))
	}
	if err != nil {
		return 0, fmt.Errorf("storing fence %q in %s: %w", f.ID, b.name, err)
	}
	return rev, nil
}

// Delete removes a fence and returns the bucket's revision without it.
func (b *Bucket) Delete(ctx context.Context, id string) error {
	if err := b.kv.Delete(ctx, Key(id)); err != nil {
		return fmt.Errorf("deleting fence %q from %s: %w", id, b.name, err)
	}
	return nil
}

// Update is a change of the bucket.
type Update struct {
	// Whole says that Fences is all there is, not only what has changed.
	Whole bool
	// Fences holds what was put, by id; nil for what was deleted.
	Fences map[string]*geofence.Fence
	// Problems are entries that are no usable fence. They change nothing.
	Problems []error
}

// Watch tells what is in the bucket, then each change, until ctx ends or
// tell returns an error. What changes in quick succession is told together.
// The error is nil only when ctx has ended; otherwise call Watch again: it
// begins with the whole once more.
func (b *Bucket) Watch(ctx context.Context, tell func(Update) error) error {
	// A watcher whose context ends closes its channel at some later time:
	// stop it ourselves.
	w, err := b.kv.WatchAll(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("watching %s: %w", b.name, err)
	}
	defer w.Stop()
	pending := Update{Whole: true, Fences: map[string]*geofence.Fence{}}
	loaded := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case entry, ok := <-w.Updates():
			switch {
			case !ok:
				return fmt.Errorf("watching %s: the watcher has ended", b.name)
			case entry == nil:
				loaded = true
			default:
				pending.add(entry)
			}
		}
		if !loaded || len(w.Updates()) > 0 {
			continue
		}
		if err := tell(pending); err != nil {
			return err
		}
		pending = Update{Fences: map[string]*geofence.Fence{}}
	}
}

func (u *Update) add(entry jetstream.KeyValueEntry) {
	id, err := ID(entry.Key())
	if err != nil {
		u.Problems = append(u.Problems, err)
		return
	}
	if entry.Operation() != jetstream.KeyValuePut {
		if u.Whole {
			delete(u.Fences, id)
		} else {
			u.Fences[id] = nil
		}
		return
	}
	f, err := Parse(id, entry.Value())
	if err != nil {
		u.Problems = append(u.Problems, fmt.Errorf("key %s: %w", entry.Key(), err))
		return
	}
	u.Fences[id] = f
}

// Parse reads one GeoJSON feature as the fence with the id. A feature that
// names no id gets it; one that names another is refused.
func Parse(id string, data []byte) (*geofence.Fence, error) {
	var feature map[string]json.RawMessage
	if err := json.Unmarshal(data, &feature); err != nil {
		return nil, fmt.Errorf("not a GeoJSON feature: %w", err)
	}
	if string(feature["type"]) != `"Feature"` {
		return nil, errors.New(`not a GeoJSON feature: "type" must be "Feature"`)
	}
	if _, named := feature["id"]; !named && !hasIDProperty(feature["properties"]) {
		feature = maps.Clone(feature)
		quoted, err := json.Marshal(id)
		if err != nil {
			return nil, err
		}
		feature["id"] = quoted
		if data, err = json.Marshal(feature); err != nil {
			return nil, err
		}
	}
	fences, err := geofence.ParseFences(data)
	if err != nil {
		return nil, err
	}
	if len(fences) != 1 {
		return nil, errors.New("the feature has no geometry")
	}
	if fences[0].ID != id {
		return nil, fmt.Errorf("the feature's id is %q, not %q", fences[0].ID, id)
	}
	return fences[0], nil
}

func hasIDProperty(properties json.RawMessage) bool {
	var p map[string]json.RawMessage
	if json.Unmarshal(properties, &p) != nil {
		return false
	}
	_, ok := p["id"]
	return ok
}

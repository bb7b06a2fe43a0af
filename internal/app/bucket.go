package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/fencekv"
	"github.com/tripline/tripline/internal/natsconn"
)

// watchAgain is the pause before a broken watcher is replaced.
const watchAgain = time.Second

// Errors of a change through the API.
var (
	errFromFile = errors.New("the fence comes from a file, which is where to change it")
	errNoFence  = errors.New("no such fence")
	errNoBucket = errors.New("no bucket is configured: add {kv: true} to fences, then fences can change at run time")
)

// load reads what the bucket holds, at start.
func (f *fences) load(ctx context.Context) error {
	if f.bucket == nil {
		return nil
	}
	loaded := errors.New("loaded")
	err := f.bucket.Watch(ctx, func(u fencekv.Update) error {
		u = withoutHeavy(u)
		f.warn(u.Problems)
		f.fromBucket = u.Fences
		return loaded
	})
	if errors.Is(err, loaded) {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

// follow applies what changes in the bucket, until ctx ends. After each
// reconnect, and whenever the watcher breaks, it starts with the whole again.
func (f *fences) follow(ctx context.Context) {
	for ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-f.reconnected:
			case <-watch.Done():
			}
			cancel()
		}()
		err := f.bucket.Watch(watch, func(u fencekv.Update) error { return f.update(ctx, u) })
		again := watch.Err() != nil // reconnected, or the end
		cancel()
		if err != nil {
			f.log.Warn("following the fences' bucket; it is read again", "err", natsconn.Explain(err))
		}
		if again {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}

// update applies a change of the bucket. Fences that a file names are the
// file's.
func (f *fences) update(ctx context.Context, u fencekv.Update) error {
	u = withoutHeavy(u)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warn(u.Problems)
	next := u.Fences
	if !u.Whole {
		next = make(map[string]*geofence.Fence, len(f.fromBucket))
		maps.Copy(next, f.fromBucket)
		for id, fence := range u.Fences {
			if fence == nil {
				delete(next, id)
			} else {
				next[id] = fence
			}
		}
	}
	put, gone := difference(f.fromBucket, next)
	var free []*geofence.Fence
	for _, fence := range put {
		if f.fromFiles[fence.ID] != nil {
			f.log.Warn("a fence of the bucket has the id of one from a file, which stays", "id", fence.ID)
			continue
		}
		free = append(free, fence)
	}
	var leave []string
	for _, id := range gone {
		if f.fromFiles[id] == nil {
			leave = append(leave, id)
		}
	}
	if err := f.apply(ctx, free, leave); err != nil {
		return err
	}
	f.fromBucket = next
	return nil
}

func (f *fences) warn(problems []error) {
	for _, err := range problems {
		f.log.Warn("an entry of the fences' bucket can't be used; it changes nothing", "err", err)
	}
}

// put makes or replaces a fence of the bucket, and returns when the devices
// inside have been judged again.
func (f *fences) put(ctx context.Context, id string, feature []byte) (*geofence.Fence, error) {
	if err := f.mayChange(id); err != nil {
		return nil, err
	}
	fence, err := fencekv.Parse(id, feature)
	if err == nil {
		err = checkCarried(fence)
	}
	if err != nil {
		return nil, invalidFence{err}
	}
	if _, err := f.bucket.Put(ctx, fence); err != nil {
		return nil, err
	}
	return fence, f.update(ctx, fencekv.Update{Fences: map[string]*geofence.Fence{id: fence}})
}

// remove deletes a fence of the bucket; devices inside leave it at once.
func (f *fences) remove(ctx context.Context, id string) error {
	if err := f.mayChange(id); err != nil {
		return err
	}
	if f.index.Snapshot().Fence(id) == nil {
		return fmt.Errorf("%q: %w", id, errNoFence)
	}
	if err := f.bucket.Delete(ctx, id); err != nil {
		return err
	}
	return f.update(ctx, fencekv.Update{Fences: map[string]*geofence.Fence{id: nil}})
}

func (f *fences) mayChange(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.fromFiles[id] != nil:
		return fmt.Errorf("%q: %w", id, errFromFile)
	case f.bucket == nil:
		return errNoBucket
	}
	return nil
}

// fromFile tells whether a fence comes from a file.
func (f *fences) fromFile(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fromFiles[id] != nil
}

// invalidFence is a feature that is no fence.
type invalidFence struct{ error }

func (e invalidFence) Unwrap() error { return e.error }

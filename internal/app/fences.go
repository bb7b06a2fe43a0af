package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/state"
	"github.com/tripline/tripline/router"
)

const (
	// pollFiles is how often the fence files are looked at for a change.
	pollFiles = 2 * time.Second
	// sweepFences is how often versions that nothing names any more are
	// looked for, and sweepApart how long one must stay so: longer than the
	// time in which partitions save what they know.
	sweepFences = time.Minute
	sweepApart  = 2 * time.Minute
)

// fences keeps the index in step with its sources.
type fences struct {
	index    *geofence.Index
	versions *state.Versions
	hub      interface{ Fences() }
	log      *slog.Logger

	mu         sync.Mutex // one change at a time; guards all below
	files      []string
	stamps     map[string]fileStamp // of the files as they were last read
	partitions []*router.Partition
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	modified time.Time
	size     int64
}

func (s *service) openFences(ctx context.Context) error {
	s.fences = &fences{versions: s.store.Versions(), hub: s.hub, log: s.log}
	for _, source := range s.cfg.Fences {
		if source.File != "" {
			s.fences.files = append(s.fences.files, source.File)
		}
	}
	stamps, err := stampAll(s.fences.files)
	if err != nil {
		return err
	}
	s.fences.stamps = stamps
	all, err := LoadFences(s.fences.files)
	if err != nil {
		return err
	}
	if all, err = s.store.Versions().Put(ctx, all); err != nil {
		return fmt.Errorf("storing the fences' versions: %w", err)
	}
	if s.index, err = geofence.NewIndex(all...); err != nil {
		return fmt.Errorf("fences: %w", err)
	}
	s.fences.index = s.index
	return nil
}

func stampAll(files []string) (map[string]fileStamp, error) {
	stamps := map[string]fileStamp{}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("fences: %w", err)
		}
		stamps[path] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// LoadFences reads files of fences, all or none. What is wrong in any of them
// comes back together, each with its file and place.
func LoadFences(files []string) ([]*geofence.Fence, error) {
	var all []*geofence.Fence
	var errs []error
	from := map[string]string{} // fence id: its file
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the fences: %w", err))
			continue
		}
		set, err := geofence.ParseFences(data)
		if err != nil {
			errs = append(errs, placed(file, err))
			continue
		}
		for _, f := range set {
			if first, taken := from[f.ID]; taken {
				errs = append(errs, fmt.Errorf("%s: fence %q is in %s as well: ids are unique over all files", file, f.ID, first))
				continue
			}
			from[f.ID] = file
			all = append(all, f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// placed puts the file before each problem of a joined error.
func placed(file string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s:%w", file, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, fmt.Errorf("%s:%w", file, e))
	}
	return errors.Join(errs...)
}

// run follows the files, and clears away versions that nobody names.
func (f *fences) run(ctx context.Context) error {
	poll, sweep := time.NewTicker(pollFiles), time.NewTicker(sweepFences)
	defer poll.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			if err := f.reload(ctx); err != nil && ctx.Err() == nil {
				f.log.Error("a fence file has changed and can't be used; the fences stay as they were", "err", err)
			}
		case <-sweep.C:
			if err := f.sweep(ctx); err != nil && ctx.Err() == nil {
				f.log.Warn("clearing away old fence versions", "err", err)
			}
		}
	}
}

// reload reads the files if one of them has changed, and applies what is new.
func (f *fences) reload(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamps, err := stampAll(f.files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone for a moment while an editor replaces it
	}
	if err != nil || maps.Equal(stamps, f.stamps) {
		return err
	}
	f.stamps = stamps // whatever comes of it, it is tried once
	all, err := LoadFences(f.files)
	if err != nil {
		return err
	}
	return f.replace(ctx, all)
}

// replace makes the index hold exactly these fences, all at once, and has the
// devices inside changed ones judged again.
func (f *fences) replace(ctx context.Context, all []*geofence.Fence) error {
	all, err := f.versions.Put(ctx, all)
	if err != nil {
		return fmt.Errorf("storing the fences' versions: %w", err)
	}
	old := f.index.Snapshot()
	change := geofence.Change{}
	keep := make(map[string]bool, len(all))
	var touched []string
	for _, fence := range all {
		keep[fence.ID] = true
		if was := old.Fence(fence.ID); was == nil || was.Revision != fence.Revision {
			change.Put = append(change.Put, fence)
			touched = append(touched, fence.ID)
		}
	}
	for fence := range old.All() {
		if !keep[fence.ID] {
			change.Delete = append(change.Delete, fence.ID)
			touched = append(touched, fence.ID)
		}
	}
	if len(touched) == 0 {
		return nil
	}
	if err := f.index.Apply(change); err != nil {
		return err
	}
	f.hub.Fences()
	f.log.Info("fences changed", "put", len(change.Put), "deleted", len(change.Delete), "total", f.index.Snapshot().Len())
	var group errgroup.Group
	for _, p := range f.partitions {
		group.Go(func() error { return p.Refence(ctx, touched) })
	}
	return group.Wait()
}

func (f *fences) sweep(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	named := map[string]bool{}
	for fence := range f.index.Snapshot().All() {
		named[fence.ID] = true
	}
	for _, p := range f.partitions {
		ids, err := p.Versions(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			named[id] = true
		}
	}
	_, err := f.versions.Sweep(ctx, func(id string) bool { return named[id] }, sweepApart)
	return err
}

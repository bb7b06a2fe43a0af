package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/fencekv"
	"github.com/tripline/tripline/internal/natsconn"
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

// fences keeps the index in step with its sources: files, which are read-only,
// and the bucket, if there is one.
type fences struct {
	index    *geofence.Index
	versions *state.Versions
	bucket   *fencekv.Bucket // nil without one
	hub      interface{ Fences() }
	log      *slog.Logger
	// reconnected is sent to when the connection has come back: the bucket
	// may have changed without the watcher's knowing.
	reconnected chan struct{}

	mu         sync.Mutex // one change at a time; guards all below
	files      []string
	stamps     map[string]fileStamp // of the files as they were last read
	broken     bool                 // then they could not be used
	fromFiles  map[string]*geofence.Fence
	fromBucket map[string]*geofence.Fence
	held       *held
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	modified time.Time
	size     int64
}

// FenceError says that fence files can't be used.
type FenceError struct{ error }

func (e FenceError) Unwrap() error { return e.error }

// readFences reads the files, before anything else is started.
func (s *service) readFences(context.Context) (err error) {
	f := &fences{hub: s.hub, held: s.held, log: s.log, fromBucket: map[string]*geofence.Fence{}}
	s.fences = f
	for _, source := range s.cfg.Fences {
		if source.File != "" {
			f.files = append(f.files, source.File)
		}
	}
	if f.stamps, err = stampAll(f.files); err != nil {
		return FenceError{err}
	}
	all, err := LoadFences(f.files)
	if err != nil {
		return FenceError{err}
	}
	f.fromFiles = byID(all)
	return nil
}

// openFences adds those of the bucket, if there is one, and makes the index.
func (s *service) openFences(ctx context.Context) (err error) {
	f := s.fences
	f.versions, f.reconnected = s.store.Versions(), s.nats.reconnected
	if slices.ContainsFunc(s.cfg.Fences, func(source config.FenceSource) bool { return source.KV }) {
		f.bucket, err = fencekv.Open(ctx, s.nats.js, s.cfg.NATS.Namespace, int64(s.budget.Fences), s.cfg.NATS.Replicas)
		if err != nil {
			return err
		}
	}
	if err := f.load(ctx); err != nil {
		return err
	}
	all := slices.SortedFunc(maps.Values(f.fromFiles), func(a, b *geofence.Fence) int { return strings.Compare(a.ID, b.ID) })
	for id, fence := range f.fromBucket {
		if f.fromFiles[id] == nil {
			all = append(all, fence)
		}
	}
	if all, err = f.versions.Put(ctx, all); err != nil {
		return fmt.Errorf("storing the fences' versions: %w", err)
	}
	if f.index, err = geofence.NewIndex(all...); err != nil {
		return fmt.Errorf("fences: %w", err)
	}
	s.index = f.index
	return nil
}

func byID(list []*geofence.Fence) map[string]*geofence.Fence {
	m := make(map[string]*geofence.Fence, len(list))
	for _, f := range list {
		m[f.ID] = f
	}
	return m
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
			if err := checkCarried(f); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", file, err))
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

// run follows the files and the bucket, and clears away versions that nobody
// names.
func (f *fences) run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	if f.bucket != nil {
		group.Go(func() { f.follow(ctx) })
	}
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
				f.log.Warn("clearing away old fence versions", "err", natsconn.Explain(err))
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
	list, err := LoadFences(f.files)
	if err != nil {
		f.broken = true
		return err
	}
	if f.broken {
		f.broken = false
		f.log.Info("the fence files can be used again")
	}
	next := byID(list)
	put, gone := difference(f.fromFiles, next)
	for i, id := range gone {
		// What a file no longer names, the bucket may.
		if fence := f.fromBucket[id]; fence != nil {
			put = append(put, fence)
			gone[i] = ""
		}
	}
	gone = slices.DeleteFunc(gone, func(id string) bool { return id == "" })
	if err := f.apply(ctx, put, gone); err != nil {
		return err
	}
	f.fromFiles = next
	return nil
}

// difference returns what is new or different in next, and what it lacks.
func difference(old, next map[string]*geofence.Fence) (put []*geofence.Fence, gone []string) {
	for id, fence := range next {
		if was := old[id]; was == nil || was.Digest() != fence.Digest() {
			put = append(put, fence)
		}
	}
	for id := range old {
		if next[id] == nil {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(put, func(a, b *geofence.Fence) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(gone)
	return put, gone
}

// apply changes the index, all at once, and has the devices inside changed
// fences judged again. It returns when that is done.
func (f *fences) apply(ctx context.Context, put []*geofence.Fence, gone []string) error {
	if len(put)+len(gone) == 0 {
		return nil
	}
	put, err := f.versions.Put(ctx, put)
	if err != nil {
		return fmt.Errorf("storing the fences' versions: %w", err)
	}
	if err := f.index.Apply(geofence.Change{Put: put, Delete: gone}); err != nil {
		return err
	}
	touched := slices.Clone(gone)
	for _, fence := range put {
		touched = append(touched, fence.ID)
	}
	f.hub.Fences()
	f.log.Info("fences changed", "put", len(put), "deleted", len(gone), "total", f.index.Snapshot().Len())
	return f.held.do(func(p *router.Partition) error { return p.Refence(ctx, touched) })
}

func (f *fences) sweep(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	named := map[string]bool{}
	for fence := range f.index.Snapshot().All() {
		named[fence.ID] = true
	}
	if f.held.count() < f.held.total() {
		return nil // what the presences of the others name is not known here
	}
	for _, p := range f.held.each() {
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

package app

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

// held is the partitions that run in this process at the moment. With an
// embedded server, and in core mode, that is all of them, always.
type held struct {
	mu       sync.Mutex          // guards byNumber
	byNumber []*router.Partition // nil where it runs elsewhere, or nowhere
}

func newHeld(partitions int) *held { return &held{byNumber: make([]*router.Partition, partitions)} }

// each yields the partitions with their numbers. One that it yields may end at
// any time: then it answers [router.ErrStopped].
func (h *held) each() iter.Seq2[int, *router.Partition] {
	h.mu.Lock()
	list := append([]*router.Partition(nil), h.byNumber...)
	h.mu.Unlock()
	return func(yield func(int, *router.Partition) bool) {
		for number, p := range list {
			if p != nil && !yield(number, p) {
				return
			}
		}
	}
}

// get returns a partition, nil if it does not run here.
func (h *held) get(number int) *router.Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byNumber[number]
}

// count says how many there are here; total, how many there are at all.
func (h *held) count() (n int) {
	for range h.each() {
		n++
	}
	return n
}

func (h *held) total() int { return len(h.byNumber) }

// add makes a partition and enters it. Whoever changes the fences either finds
// it here, or it is made with the changed ones.
func (h *held) add(number int, build func() *router.Partition) *router.Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := build()
	h.byNumber[number] = p
	return p
}

func (h *held) remove(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byNumber[number] = nil
}

// do calls f for each partition, all at once. One that has ended meanwhile is
// none of ours any more, and no error.
func (h *held) do(f func(p *router.Partition) error) error {
	var group errgroup.Group
	for _, p := range h.each() {
		group.Go(func() error {
			if err := f(p); !errors.Is(err, router.ErrStopped) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

// close saves what the partitions have reached.
func (h *held) close(ctx context.Context) error {
	return h.do(func(p *router.Partition) error { return p.Close(ctx) })
}

// runsHere is nil if the partition of a device runs in this process, or if
// there can be none of that name.
func (s *service) runsHere(device string) error {
	if s.keeper == nil {
		return nil
	}
	patterns, err := ingest.ParsePatterns(s.cfg.NATS.Namespace, s.cfg.Ingest.Subjects)
	if err != nil {
		return err
	}
	subject, err := patterns.Subject(device)
	if err != nil {
		return nil
	}
	if number := router.PartitionOf(subject, s.held.total()); s.held.get(number) == nil {
		return s.elsewhere(number)
	}
	return nil
}

// elsewhere is the answer to a question about a partition that another replica
// runs, or none at the moment.
func (s *service) elsewhere(number int) error {
	if s.keeper == nil {
		return router.ErrStopped
	}
	v := s.keeper.View()
	for _, r := range v.Replicas {
		if number < len(v.Owners) && r.ID == v.Owners[number] && r.ID != v.Self {
			return failf(http.StatusMisdirectedRequest, "partition %d is run by replica %s: ask %s", number, r.Name, r.Admin)
		}
	}
	return failf(http.StatusServiceUnavailable, "partition %d is being taken over: ask again", number)
}

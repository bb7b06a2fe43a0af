package app

import (
	"context"
	"sync/atomic"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// relay is the outlet that the partitions know of a consumer. It stays the
// same when a reload puts another outlet behind it: whoever offers meanwhile
// waits for the successor, so nothing overtakes what the old one still holds.
type relay struct {
	current atomic.Pointer[incumbent]
}

// incumbent is the outlet of the moment.
type incumbent struct {
	outlet   *fallback.Outlet
	replaced chan struct{} // closed when there is a successor
}

func newRelay(o *fallback.Outlet) *relay {
	r := &relay{}
	r.current.Store(&incumbent{o, make(chan struct{})})
	return r
}

// Offer implements [router.Outlet].
func (r *relay) Offer(ctx context.Context, t router.Trigger, settled func()) {
	for {
		now := r.current.Load()
		if now.outlet.Accept(ctx, t, settled) || ctx.Err() != nil {
			return
		}
		select {
		case <-now.replaced:
		case <-ctx.Done():
			return
		}
	}
}

// replace puts a successor in. The old outlet must have returned from Run.
func (r *relay) replace(o *fallback.Outlet) {
	old := r.current.Swap(&incumbent{o, make(chan struct{})})
	close(old.replaced)
}

package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
)

// shownOrphan is what is left of a consumer that is not configured any more.
type shownOrphan struct {
	Consumer string `json:"consumer"`
	Items    uint64 `json:"items"`
	Bytes    uint64 `json:"bytes"`
	Dead     uint64 `json:"dead"`
}

// orphanAPI registers what concerns consumers that were removed.
func (s *service) orphanAPI(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/orphans", apiFunc(s.getOrphans))
	mux.Handle("DELETE /api/v1/orphans/{name}", longFunc(s.deleteOrphan))
}

// orphans lists them. Nothing may be reloaded meanwhile.
func (s *service) orphans(ctx context.Context) ([]shownOrphan, error) {
	names := make([]string, len(s.cfg.Consumers))
	for i := range s.cfg.Consumers {
		names[i] = s.cfg.Consumers[i].Name
	}
	found, err := jetqueue.Orphans(ctx, s.nats.store, s.cfg.NATS.Namespace, names)
	if err != nil {
		return nil, err
	}
	s.gauges.countDead(ctx)
	dead := *s.gauges.dead.Load()
	list := []shownOrphan{}
	for _, o := range found {
		list = append(list, shownOrphan{o.Consumer, o.Items, o.Bytes, dead[o.Consumer]})
	}
	return list, nil
}

func (s *service) getOrphans(r *http.Request) (any, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	list, err := s.orphans(r.Context())
	if err != nil {
		return nil, err
	}
	return map[string]any{"orphans": list}, nil
}

// deleteOrphan removes the stream and the dead letters of a consumer that is
// not configured any more. No reload can bring it back meanwhile.
func (s *service) deleteOrphan(r *http.Request) (any, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	name := r.PathValue("name")
	list, err := s.orphans(r.Context())
	if err != nil {
		return nil, err
	}
	for _, o := range list {
		if o.Consumer != name {
			continue
		}
		if err := s.removeOrphan(r.Context(), name); err != nil {
			return nil, err
		}
		s.log.Info("an operator purged an orphaned backlog", "consumer", name, "items", o.Items, "dead", o.Dead)
		return o, nil
	}
	if _, configured := s.roster.find(name); configured {
		return nil, failf(http.StatusConflict, "consumer %q is configured: purge its fallback instead", name)
	}
	return nil, failf(http.StatusNotFound, "nothing is left of a consumer %q", name)
}

func (s *service) removeOrphan(ctx context.Context, name string) error {
	left := jetqueue.Inspect(s.nats.store, s.cfg.NATS.Namespace, name)
	for d, err := range left.Dead(ctx, fallback.Filter{}) {
		if err == nil {
			err = left.DeleteDead(ctx, d.Seq)
		}
		if err != nil {
			return fmt.Errorf("deleting the dead letters of %s: %w", name, err)
		}
	}
	return jetqueue.RemoveOrphan(ctx, s.nats.store, s.cfg.NATS.Namespace, name)
}

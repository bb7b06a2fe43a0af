package app

import (
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// shownTrigger is what the API shows of any stored trigger.
type shownTrigger struct {
	Seq        uint64          `json:"seq"`
	ID         string          `json:"id"`
	Device     string          `json:"device"`
	Fence      string          `json:"fence"`
	Transition string          `json:"transition"`
	At         time.Time       `json:"at"`
	Sequence   string          `json:"sequence"`
	Priority   string          `json:"priority"`
	Redriven   bool            `json:"redriven,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
}

func showTrigger(seq uint64, t *router.Trigger) shownTrigger {
	return shownTrigger{
		Seq: seq, ID: t.ID, Device: t.Device, Fence: t.Fence, Transition: t.Kind.String(),
		At: time.UnixMilli(t.At).UTC(), Sequence: t.Sequence, Priority: t.Priority.String(), Redriven: t.Redriven,
	}
}

// shownItem is a parked trigger.
type shownItem struct {
	shownTrigger
	Parked time.Time `json:"parked"`
	Reason string    `json:"reason"`
	Bytes  int       `json:"bytes"`
}

func showItem(i *fallback.Item) shownItem {
	return shownItem{showTrigger(i.Seq, &i.Trigger), i.Parked.UTC(), string(i.Reason), i.Size}
}

func itemSeq(i *fallback.Item) uint64 { return i.Seq }

// fallbackAPI registers what concerns the parked triggers.
func (s *service) fallbackAPI(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/consumers/{name}/fallback", longFunc(s.listParked))
	mux.Handle("GET /api/v1/consumers/{name}/fallback/{seq}", apiFunc(s.showParked))
	mux.Handle("DELETE /api/v1/consumers/{name}/fallback", longFunc(s.purgeParked))
	mux.Handle("DELETE /api/v1/consumers/{name}/fallback/{seq}", apiFunc(s.purgeOneParked))
}

func (s *service) listParked(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	f, limit, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	return list(m.queue.Items(r.Context(), f), limit, itemSeq, showItem)
}

func (s *service) soughtParked(r *http.Request) (*member, fallback.Item, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, fallback.Item{}, err
	}
	items := func(f fallback.Filter) iter.Seq2[fallback.Item, error] { return m.queue.Items(r.Context(), f) }
	item, err := sought(r, items, itemSeq)
	return m, item, err
}

func (s *service) showParked(r *http.Request) (any, error) {
	_, item, err := s.soughtParked(r)
	if err != nil {
		return nil, err
	}
	shown := showItem(&item)
	shown.Body = body(item.Trigger.Body)
	return shown, nil
}

func (s *service) purgeParked(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	f, err := selection(r)
	if err != nil {
		return nil, err
	}
	n, err := m.outlet.Purge(r.Context(), f)
	s.log.Info("an operator purged parked triggers", "consumer", m.name, "purged", n, "query", r.URL.RawQuery, "err", err)
	if err != nil {
		return nil, outletError(err)
	}
	return counted{true, n}, nil
}

func (s *service) purgeOneParked(r *http.Request) (any, error) {
	m, item, err := s.soughtParked(r)
	if err != nil {
		return nil, err
	}
	purged, err := m.outlet.PurgeItem(r.Context(), item)
	switch {
	case err != nil:
		return nil, outletError(err)
	case !purged:
		return nil, failf(http.StatusNotFound, "%d was delivered meanwhile", item.Seq)
	}
	return counted{true, 1}, nil
}

// counted is how many entries a purge removed.
type counted struct {
	OK     bool `json:"ok"`
	Purged int  `json:"purged"`
}

// outletError gives an error the status that it means.
func outletError(err error) error {
	if errors.Is(err, fallback.ErrClosed) {
		return failf(http.StatusConflict, "%w: the consumer is being reloaded or stopped; ask again", err)
	}
	return err
}

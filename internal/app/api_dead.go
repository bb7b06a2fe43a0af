package app

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
)

// shownDead is a dead letter.
type shownDead struct {
	shownTrigger
	Reason   string     `json:"reason"`
	Attempts int        `json:"attempts"`
	Error    string     `json:"error"`
	Parked   *time.Time `json:"parked"` // null if it never was
	Died     time.Time  `json:"died"`
}

func showDead(d *fallback.DeadLetter) shownDead {
	return shownDead{
		showTrigger(d.Seq, &d.Trigger), string(d.Reason), d.Attempts, d.Error, optional(d.Parked), d.Died.UTC(),
	}
}

func deadSeq(d *fallback.DeadLetter) uint64 { return d.Seq }

// deadAPI registers what concerns the dead letters.
func (s *service) deadAPI(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/consumers/{name}/dead", longFunc(s.listDead))
	mux.Handle("GET /api/v1/consumers/{name}/dead/{seq}", apiFunc(s.showOneDead))
	mux.Handle("POST /api/v1/consumers/{name}/dead/redrive", longFunc(s.redriveDead))
	mux.Handle("POST /api/v1/consumers/{name}/dead/{seq}/redrive", apiFunc(s.redriveOneDead))
	mux.Handle("DELETE /api/v1/consumers/{name}/dead", longFunc(s.purgeDead))
	mux.Handle("DELETE /api/v1/consumers/{name}/dead/{seq}", apiFunc(s.purgeOneDead))
	mux.Handle("POST /api/v1/consumers/{name}/redrive", longFunc(s.redriveAll))
}

func (s *service) listDead(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	f, limit, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	return list(m.queue.Dead(r.Context(), f), limit, deadSeq, showDead)
}

func (s *service) soughtDead(r *http.Request) (*member, fallback.DeadLetter, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, fallback.DeadLetter{}, err
	}
	letters := func(f fallback.Filter) iter.Seq2[fallback.DeadLetter, error] { return m.queue.Dead(r.Context(), f) }
	d, err := sought(r, letters, deadSeq)
	return m, d, err
}

func (s *service) showOneDead(r *http.Request) (any, error) {
	_, d, err := s.soughtDead(r)
	if err != nil {
		return nil, err
	}
	shown := showDead(&d)
	shown.Body = body(d.Trigger.Body)
	return shown, nil
}

// eachDead does something with the dead letters that a filter accepts, in
// their order, and returns how often it went well. Those that died since it
// began are left: a redriven trigger may die again, and would go round.
func (s *service) eachDead(r *http.Request, m *member, f fallback.Filter, do func(fallback.DeadLetter) error) (int, error) {
	stream, err := s.nats.js.Stream(r.Context(), jetqueue.DeadStreamName(s.cfg.NATS.Namespace))
	if err != nil {
		return 0, fmt.Errorf("looking for the newest dead letter: %w", err)
	}
	newest, n := stream.CachedInfo().State.LastSeq, 0
	for d, err := range m.queue.Dead(r.Context(), f) {
		if err == nil && d.Seq > newest {
			break
		}
		if err == nil {
			err = do(d)
		}
		if err != nil {
			return n, fmt.Errorf("after %d: %w", n, outletError(err))
		}
		n++
	}
	return n, nil
}

func (s *service) redrive(r *http.Request, m *member, f fallback.Filter) (any, error) {
	elsewhere := 0
	n, err := s.eachDead(r, m, f, func(d fallback.DeadLetter) error {
		err := m.outlet.Redrive(r.Context(), d)
		if errors.Is(err, fallback.ErrNotHeld) {
			elsewhere++
			return nil
		}
		return err
	})
	n -= elsewhere
	s.log.Info("an operator redrove dead letters", "consumer", m.name, "redriven", n, "query", r.URL.RawQuery, "err", err)
	if err != nil {
		return nil, err
	}
	return redriven{true, n, elsewhere}, nil
}

// redriven is how many dead letters were sent again.
type redriven struct {
	OK       bool `json:"ok"`
	Redriven int  `json:"redriven"`
	// Elsewhere counts those whose partition another replica runs: they stay
	// until that one is asked too.
	Elsewhere int `json:"elsewhere,omitempty"`
}

// redriveAll is the action without a filter.
func (s *service) redriveAll(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	return s.redrive(r, m, fallback.Filter{})
}

func (s *service) redriveDead(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	f, err := selection(r)
	if err != nil {
		return nil, err
	}
	return s.redrive(r, m, f)
}

func (s *service) redriveOneDead(r *http.Request) (any, error) {
	m, d, err := s.soughtDead(r)
	if err != nil {
		return nil, err
	}
	if err := m.outlet.Redrive(r.Context(), d); errors.Is(err, fallback.ErrNotHeld) {
		return nil, s.elsewhere(d.Trigger.Partition)
	} else if err != nil {
		return nil, outletError(err)
	}
	return redriven{OK: true, Redriven: 1}, nil
}

func (s *service) purgeDead(r *http.Request) (any, error) {
	m, err := s.member(r)
	if err != nil {
		return nil, err
	}
	f, err := selection(r)
	if err != nil {
		return nil, err
	}
	n, err := s.eachDead(r, m, f, func(d fallback.DeadLetter) error { return m.queue.DeleteDead(r.Context(), d.Seq) })
	s.log.Info("an operator purged dead letters", "consumer", m.name, "purged", n, "query", r.URL.RawQuery, "err", err)
	if err != nil {
		return nil, err
	}
	return counted{true, n}, nil
}

func (s *service) purgeOneDead(r *http.Request) (any, error) {
	m, d, err := s.soughtDead(r)
	if err != nil {
		return nil, err
	}
	if err := m.queue.DeleteDead(r.Context(), d.Seq); err != nil {
		return nil, err
	}
	return counted{true, 1}, nil
}

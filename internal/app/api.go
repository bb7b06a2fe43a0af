package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/natsconn"
)

// apiTimeout bounds what a request may wait for.
const apiTimeout = 20 * time.Second

// api serves everything beyond the health checks.
func (s *service) api() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.Handle("GET /api/v1/live", s.hub)
	for pattern, handle := range map[string]apiFunc{
		"GET /api/v1/consumers":                s.getConsumers,
		"POST /api/v1/consumers/{name}/open":   s.action((*fallbackOutlet).open),
		"POST /api/v1/consumers/{name}/probe":  s.action((*fallbackOutlet).probe),
		"POST /api/v1/consumers/{name}/pause":  s.action((*fallbackOutlet).pause),
		"POST /api/v1/consumers/{name}/resume": s.action((*fallbackOutlet).resume),
		"POST /api/v1/reload":                  s.postReload,
		"GET /api/v1/fences":                   s.getFences,
		"GET /api/v1/fences/{id}":              s.getFence,
		"PUT /api/v1/fences/{id}":              s.putFence,
		"DELETE /api/v1/fences/{id}":           s.deleteFence,
		"GET /api/v1/fences/{id}/devices":      s.getInside,
	} {
		mux.Handle(pattern, handle)
	}
	s.fallbackAPI(mux)
	s.deadAPI(mux)
	s.orphanAPI(mux)
	s.deviceAPI(mux)
	s.replicaAPI(mux)
	return mux
}

// apiFunc answers a request with a value, written as JSON, or an error.
type apiFunc func(r *http.Request) (any, error)

// statusError is an error with the HTTP status that it means.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

func failf(status int, format string, args ...any) error {
	return statusError{status, fmt.Errorf(format, args...)}
}

// ServeHTTP implements [http.Handler].
func (f apiFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), apiTimeout)
	defer cancel()
	v, err := f(r.WithContext(ctx))
	answer(w, v, err)
}

// answer writes a value, or an error.
func answer(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		if known, ok := errors.AsType[statusError](err); ok {
			status = known.status
		}
		v = map[string]string{"error": natsconn.Explain(err).Error()}
	}
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer can't be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

var done = map[string]bool{"ok": true}

func (s *service) getConsumers(*http.Request) (any, error) {
	return struct {
		Consumers []live.Consumer `json:"consumers"`
	}{s.gauges.consumers()}, nil
}

// fallbackOutlet names the actions that an operator has on an outlet.
type fallbackOutlet struct{ *fallback.Outlet }

func (o *fallbackOutlet) open()   { o.ForceOpen(0) }
func (o *fallbackOutlet) probe()  { o.ProbeNow() }
func (o *fallbackOutlet) pause()  { o.Pause() }
func (o *fallbackOutlet) resume() { o.Resume() }

func (s *service) member(r *http.Request) (*member, error) {
	name := r.PathValue("name")
	m, ok := s.roster.find(name)
	if !ok {
		return nil, failf(http.StatusNotFound, "no consumer %q", name)
	}
	return m, nil
}

func (s *service) action(act func(*fallbackOutlet)) apiFunc {
	return func(r *http.Request) (any, error) {
		m, err := s.member(r)
		if err != nil {
			return nil, err
		}
		act(&fallbackOutlet{m.outlet})
		s.log.Info("an operator acted on a consumer", "consumer", m.name, "path", r.URL.Path)
		return done, nil
	}
}

// postReload reads the configuration again. It goes on if the client hangs up:
// half a reload helps nobody.
func (s *service) postReload(r *http.Request) (any, error) {
	if err := s.reload(context.WithoutCancel(r.Context())); err != nil {
		return nil, statusError{http.StatusConflict, err}
	}
	return done, nil
}

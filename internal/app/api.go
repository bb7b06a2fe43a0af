package app

import (
	"encoding/json"
	"net/http"

	"github.com/tripline/tripline/internal/admin/live"
)

// api serves everything beyond the health checks.
func (s *service) api() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("GET /api/v1/consumers", s.getConsumers)
	mux.Handle("GET /api/v1/live", s.hub)
	return mux
}

func (s *service) getConsumers(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		Consumers []live.Consumer `json:"consumers"`
	}{s.gauges.consumers()})
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer can't be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

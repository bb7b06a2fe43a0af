package admin

import (
	"context"
	"encoding/json"
	"net/http"
)

// Check is one thing that readiness depends on.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Reason says, where OK is false, what is wrong and what to do; where it
	// is true, a warning, or nothing.
	Reason string `json:"reason,omitempty"`
}

func readyz(ready func(context.Context) []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		checks := ready(r.Context())
		status := http.StatusOK
		for _, c := range checks {
			if !c.OK {
				status = http.StatusServiceUnavailable
			}
		}
		writeJSON(w, status, struct {
			Ready  bool    `json:"ready"`
			Checks []Check `json:"checks"`
		}{status == http.StatusOK, checks})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer can't be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

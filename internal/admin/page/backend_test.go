package page_test

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/admin/page"
)

// backend is an admin API of the agreed form, with the real hub and the real
// page, over a made-up town.
type backend struct {
	*httptest.Server
	hub *live.Hub

	options page.Options
	live    live.Config

	mu        sync.Mutex
	token     string
	hold      bool // the fences are not there yet
	consumers []live.Consumer
	fences    []map[string]any
	actions   []string // "POST dispatch/open", "PUT depot", ...
}

func startBackend(t *testing.T, change ...func(*backend)) *backend {
	t.Helper()
	b := &backend{consumers: someConsumers(), fences: someFences()}
	b.live = live.Config{Version: "v0.0.0-test", Namespace: "tripline", Started: time.Now()}
	for _, f := range change {
		f(b)
	}
	b.hub = live.New(b.live)
	assets, err := page.Handler(b.options)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", assets)
	api := http.NewServeMux()
	api.Handle("GET /api/v1/live", b.hub)
	api.HandleFunc("GET /api/v1/consumers", b.listConsumers)
	api.HandleFunc("POST /api/v1/consumers/{name}/{action}", b.act)
	api.HandleFunc("GET /api/v1/fences", b.listFences)
	api.HandleFunc("GET /api/v1/fences/{id}/devices", b.inside)
	api.HandleFunc("PUT /api/v1/fences/{id}", b.putFence)
	api.HandleFunc("DELETE /api/v1/fences/{id}", b.deleteFence)
	mux.Handle("/api/", b.guard(api))
	b.Server = httptest.NewServer(mux)
	t.Cleanup(func() { b.CloseClientConnections(); b.Close() })
	return b
}

// town starts its life: vans that drive, triggers, a rhythm of snapshots.
func (b *backend) town(t *testing.T, vans int) {
	ctx, stop := context.WithCancel(t.Context())
	var life sync.WaitGroup
	life.Go(func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				b.drive(now, vans)
				if n%2 == 0 {
					b.publish()
				}
				if n%3 == 0 {
					b.hub.Trigger(someTrigger(n / 3))
				}
			}
		}
	})
	t.Cleanup(func() { stop(); life.Wait() })
}

// drive moves each van along its own loop around the town.
func (b *backend) drive(now time.Time, vans int) {
	var moved []live.Position
	seconds := float64(now.UnixMilli()%86_400_000) / 1000
	for i := range vans {
		turn := seconds/(40+float64(i%17)) + float64(i)
		reach := 0.004 + 0.00045*float64(i%60)
		moved = append(moved, live.Position{
			Device: vanName(i),
			Lat:    townLat + reach*math.Sin(turn)*(0.6+0.4*math.Sin(float64(i))),
			Lon:    townLon + 1.6*reach*math.Cos(turn*(1+0.1*float64(i%3))),
			TS:     now.UnixMilli(), Heading: math.NaN(),
		})
	}
	b.hub.Positions(moved)
}

// change alters one consumer and tells the hub, as the real thing does.
func (b *backend) change(name string, alter func(*live.Consumer)) {
	b.mu.Lock()
	for i := range b.consumers {
		c := &b.consumers[i]
		if c.Name != name {
			continue
		}
		from := c.State
		alter(c)
		if c.State != from {
			c.Since = time.Now()
			b.hub.Breaker(live.Breaker{Consumer: name, At: c.Since, From: from, To: c.State, Reason: "p99", Text: c.Reason, Rung: c.Rung, Until: c.OpenUntil})
		}
	}
	b.mu.Unlock()
	b.publish()
}

func (b *backend) publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.Consumers(slices.Clone(b.consumers))
}

func (b *backend) trip(name string) {
	b.change(name, func(c *live.Consumer) {
		until := time.Now().Add(8 * time.Second)
		c.State, c.Reason, c.Rung, c.OpenUntil = "open", "P99 was 812 ms over 240 calls, the limit is 500 ms", 3, &until
		c.P99MS, c.SlowRatio, c.DeliveredPerS, c.InFlight = 812, 0.04, 0, 0
		eta := 41.0
		c.Backlog = live.Backlog{Items: 1284, Bytes: 1 << 20, MaxBytes: 64 << 20, OldestS: 38, ReplayPerS: 0, ETAS: &eta}
		c.Backlog.ETAS = nil
		c.LastErrors = []live.Error{
			{At: time.Now().Add(-3 * time.Second), Text: "answered 503: upstream connect error"},
			{At: time.Now().Add(-9 * time.Second), Text: "no answer within 2s"},
		}
	})
}

func (b *backend) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		token := b.token
		b.mu.Unlock()
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			fail(w, http.StatusUnauthorized, "send the admin.token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (b *backend) listConsumers(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer(w, map[string]any{"consumers": b.consumers})
}

func (b *backend) listFences(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hold {
		fail(w, http.StatusServiceUnavailable, "too busy")
		return
	}
	answer(w, map[string]any{"type": "FeatureCollection", "features": b.fences})
}

func (b *backend) inside(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"devices": []map[string]any{
		{"device": vanName(3), "entered_at": time.Now().Add(-95 * time.Second), "lat": townLat, "lon": townLon},
		{"device": vanName(11), "entered_at": time.Now().Add(-12 * time.Second), "lat": townLat, "lon": townLon},
	}})
}

func (b *backend) act(w http.ResponseWriter, r *http.Request) {
	name, action := r.PathValue("name"), r.PathValue("action")
	b.record("POST " + name + "/" + action)
	switch action {
	case "open":
		b.trip(name)
	case "probe":
		b.change(name, func(c *live.Consumer) {
			c.State, c.Reason, c.OpenUntil, c.Successes, c.ProbesInFlight = "half_open", "an operator asked for a probe", nil, 2, 1
		})
		b.hub.Probe(live.Probe{Consumer: name, At: time.Now(), Verdict: "healthy", LatencyMS: 120})
	case "pause":
		b.change(name, func(c *live.Consumer) { c.Paused = true })
	case "resume":
		b.change(name, func(c *live.Consumer) { c.Paused = false })
	case "redrive":
		b.change(name, func(c *live.Consumer) { c.DeadTotal = 0 })
	default:
		fail(w, http.StatusNotFound, "no such action")
		return
	}
	answer(w, map[string]bool{"ok": true})
}

func (b *backend) putFence(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var f map[string]any
	if err != nil || json.Unmarshal(body, &f) != nil {
		fail(w, http.StatusBadRequest, "the body is not JSON")
		return
	}
	id := r.PathValue("id")
	b.record("PUT " + id)
	b.mu.Lock()
	if i := b.find(id); i >= 0 {
		if b.fences[i]["properties"].(map[string]any)["source"] == "file" {
			b.mu.Unlock()
			fail(w, http.StatusConflict, "fence "+id+" comes from a file: change it there")
			return
		}
		b.fences = slices.Delete(b.fences, i, i+1)
	}
	f["properties"].(map[string]any)["source"] = "kv"
	b.fences = append(b.fences, f)
	b.mu.Unlock()
	b.hub.Fences()
	answer(w, map[string]bool{"ok": true})
}

func (b *backend) deleteFence(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	b.record("DELETE " + id)
	b.remove(id)
	answer(w, map[string]bool{"ok": true})
}

func (b *backend) remove(id string) {
	b.mu.Lock()
	if i := b.find(id); i >= 0 {
		b.fences = slices.Delete(b.fences, i, i+1)
	}
	b.mu.Unlock()
	b.hub.Fences()
}

func (b *backend) find(id string) int {
	return slices.IndexFunc(b.fences, func(f map[string]any) bool { return f["id"] == id })
}

func (b *backend) fence(id string) map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		return b.fences[i]
	}
	return nil
}

func (b *backend) record(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.actions = append(b.actions, action)
}

func (b *backend) did(action string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.actions, action)
}

func (b *backend) done() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.actions, ", ")
}

// release gives the fences out.
func (b *backend) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold = false
}

func (b *backend) setToken(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = token
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": text})
}

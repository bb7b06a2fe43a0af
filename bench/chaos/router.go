package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	readyWithin = 60 * time.Second
	stopWithin  = 45 * time.Second
	askWithin   = 5 * time.Second
)

// tripline is the router under test, in a process of its own.
type tripline struct {
	*process
	admin  string // host:port
	config string // path
	nats   string // section nats of the configuration, YAML
	http   *http.Client
	up     atomic.Bool // it was ready since it was started
}

// newTripline writes the configuration and the fences. natsConfig is the
// section nats in YAML.
func newTripline(dir, binary, natsConfig string, consumers []*consumer) (*tripline, error) {
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "city.geojson"), cityFences(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the city: %w", err)
	}
	config := filepath.Join(dir, "tripline.yaml")
	p, err := newProcess("the router", filepath.Join(dir, "router.log"), binary, "run", "-c", config)
	if err != nil {
		return nil, err
	}
	t := &tripline{
		process: p, admin: admin, config: config, nats: natsConfig,
		http: &http.Client{Timeout: askWithin},
	}
	return t, t.configure(consumers)
}

// configure writes the configuration file.
func (t *tripline) configure(consumers []*consumer) error {
	// A new file in the place of the old one: the router may be reading.
	next := t.config + ".next"
	if err := os.WriteFile(next, []byte(configuration(t.nats, t.admin, consumers)), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return os.Rename(next, t.config)
}

func configuration(natsConfig, admin string, consumers []*consumer) string {
	var b strings.Builder
	fmt.Fprintf(&b, `nats: %s
ingest: {subjects: ["location.*", "fleet.*.*"], partitions: 8}
fences: [{file: city.geojson}]
admin: {listen: %q}
shutdown_grace: 2s
consumers:
`, natsConfig, admin)
	for _, c := range consumers {
		fmt.Fprintf(&b, `  - name: %s
    match: %s
    %s
    breaker: {p99: 250ms, base: 300ms, max: 2s, settle: 2s}
    concurrency: %d
`, c.name, c.match, c.sink(), c.concurrency)
		if c.fallback != "" {
			fmt.Fprintf(&b, "    fallback: %s\n", c.fallback)
		}
	}
	return b.String()
}

// start runs the router, unless it is running.
func (t *tripline) start() error {
	t.up.Store(false)
	return t.process.start()
}

// awaitReady returns when the router works, or why it does not.
func (t *tripline) awaitReady(ctx context.Context) error {
	deadline := time.After(readyWithin)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		if last = t.works(ctx); last == nil {
			t.up.Store(true)
			return nil
		}
		select {
		case <-ticker.C:
		case err := <-t.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return fmt.Errorf("the router was not ready within %v: %w\n%s", readyWithin, last, tail(t.log.Name(), 20))
		}
	}
}

// works is nil when the router judges locations, though it may not be ready: a
// queue that is full, for one, is part of the run.
func (t *tripline) works(ctx context.Context) error {
	_, body, err := t.get(ctx, "/readyz")
	if err != nil {
		return err
	}
	var list struct {
		Checks []struct {
			Name, Reason string
			OK           bool
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return err
	}
	for _, c := range list.Checks {
		if !c.OK && (c.Name == "running" || c.Name == "nats") {
			return fmt.Errorf("%s: %s", c.Name, c.Reason)
		}
	}
	return nil
}

// ready is nil when the router says that it is.
func (t *tripline) ready(ctx context.Context) error {
	status, body, err := t.get(ctx, "/readyz")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return errors.New(strings.TrimSpace(body))
	}
	return nil
}

// consumers is the state of the consumers as the router tells it.
func (t *tripline) consumers(ctx context.Context) string {
	_, body, err := t.get(ctx, "/api/v1/consumers")
	if err != nil {
		return err.Error()
	}
	var list struct {
		Consumers []struct {
			Name, State string
			InFlight    int `json:"in_flight"`
			LaneDepth   int `json:"lane_depth"`
			Backlog     struct{ Items int }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return err.Error()
	}
	var parts []string
	for _, c := range list.Consumers {
		parts = append(parts, fmt.Sprintf("%s %s, %d parked, %d in the lane, %d in flight", c.Name, c.State, c.Backlog.Items, c.LaneDepth, c.InFlight))
	}
	return strings.Join(parts, "; ")
}

// metric is the sum of a metric over all of its labels but those of the
// consumers that are left out.
func (t *tripline) metric(ctx context.Context, name string, without ...string) (sum float64, err error) {
	_, body, err := t.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if slices.ContainsFunc(without, func(c string) bool { return strings.Contains(rest, fmt.Sprintf("consumer=%q", c)) }) {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum += v
	}
	return sum, lines.Err()
}

func (t *tripline) get(ctx context.Context, path string) (status int, body string, err error) {
	return t.ask(ctx, http.MethodGet, path)
}

func (t *tripline) ask(ctx context.Context, method, path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+t.admin+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

package app

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/state"
)

const (
	viewEvery  = 500 * time.Millisecond
	storeEvery = 5 * time.Second
	// rateOver is how many views a rate is taken over.
	rateOver = 6
)

// gauges looks at what only shows as a state, now and then, for the API, the
// live page, readiness and Prometheus.
type gauges struct {
	s      *service
	views  atomic.Pointer[[]live.Consumer]
	stores atomic.Pointer[[]streamUse]
	dead   atomic.Pointer[map[string]uint64] // dead letters by consumer
	// measured is when the server last said how full its streams are.
	measured atomic.Pointer[time.Time]
	readers  readers
	rates    map[string]*rate // owned by run
}

// streamUse is how full a stream is.
type streamUse struct {
	stream     string
	bytes, max uint64
	// loses: when it is full, what must not be lost has no place, or waits.
	loses  bool
	fullIn time.Duration // at the rate of the moment; 0: not known
}

func (u streamUse) ratio() float64 {
	if u.max == 0 {
		return 0
	}
	return float64(u.bytes) / float64(u.max)
}

// rate is a counter's growth per second over the last views.
type rate struct {
	totals [rateOver]uint64
	times  [rateOver]time.Time
	n      int
}

func (r *rate) add(total uint64, now time.Time) float64 {
	i := r.n % rateOver
	before, since := r.totals[i], r.times[i]
	if r.n < rateOver {
		before, since = r.totals[0], r.times[0]
	}
	r.totals[i], r.times[i] = total, now
	r.n++
	if since.IsZero() || total < before {
		return 0
	}
	return float64(total-before) / now.Sub(since).Seconds()
}

func newGauges(s *service) *gauges {
	g := &gauges{s: s, rates: map[string]*rate{}}
	g.views.Store(&[]live.Consumer{})
	g.stores.Store(&[]streamUse{})
	g.dead.Store(&map[string]uint64{})
	now := time.Now()
	g.measured.Store(&now)
	s.metrics.Registry().MustRegister(g)
	return g
}

// consumers is the state of the consumers as last seen.
func (g *gauges) consumers() []live.Consumer { return *g.views.Load() }

func (g *gauges) run(ctx context.Context) error {
	view, store := time.NewTicker(viewEvery), time.NewTicker(storeEvery)
	defer view.Stop()
	defer store.Stop()
	g.look()
	g.measure(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-view.C:
			g.look()
		case <-store.C:
			g.measure(ctx)
			g.lookAtReaders(ctx)
		}
	}
}

func (g *gauges) look() {
	now := time.Now()
	views := []live.Consumer{}
	for _, m := range g.s.roster.all() {
		r := g.rates[m.name]
		if r == nil {
			r = &rate{}
			g.rates[m.name] = r
		}
		v := m.view(0)
		v.DeadTotal = (*g.dead.Load())[m.name]
		v.DeliveredPerS = r.add(v.DeliveredTotal, now)
		views = append(views, v)
	}
	g.views.Store(&views)
	g.s.hub.Consumers(views)
}

// measure asks the server how full the streams are. If it doesn't answer, the
// old figures stay: readiness has its own check of the connection.
func (g *gauges) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeEvery)
	defer cancel()
	names := []string{state.StreamName(g.s.cfg.NATS.Namespace)}
	if g.s.cfg.Ingest.Durable {
		names = append(names, ingest.StreamName(g.s.cfg.NATS.Namespace))
	}
	var uses []streamUse
	for _, name := range names {
		stream, err := g.s.nats.js.Stream(ctx, name)
		if err != nil {
			return
		}
		info := stream.CachedInfo()
		uses = append(uses, streamUse{
			stream: name, bytes: info.State.Bytes, max: uint64(max(info.Config.MaxBytes, 0)), loses: true,
		})
	}
	for _, m := range g.s.roster.all() {
		u := m.queue.Usage()
		uses = append(uses, streamUse{
			stream: jetqueue.StreamName(g.s.cfg.NATS.Namespace, m.name), bytes: u.Bytes, max: u.MaxBytes,
			loses: g.s.roster.blocks(m), fullIn: m.outlet.Status().FullIn,
		})
	}
	if use, ok := g.countDead(ctx); ok {
		uses = append(uses, use)
	}
	g.stores.Store(&uses)
	now := time.Now()
	g.measured.Store(&now)
}

// blocks says whether everything waits when a member's queue is full.
func (r *roster) blocks(m *member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return m.cfg.Fallback.OnFull == config.OnFullBlock
}

// lookAtReaders sees that the partitions judge what is stored.
func (g *gauges) lookAtReaders(ctx context.Context) {
	if !g.s.cfg.Ingest.Durable {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeEvery)
	defer cancel()
	positions := map[int]uint64{}
	for number, p := range g.s.held.each() {
		if status := p.Status(); status.Started {
			positions[number] = status.Position
		}
	}
	g.readers.look(ctx, time.Now(), positions, func(ctx context.Context, number int) error {
		return g.s.source.Tick(ctx, number, "")
	})
}

// countDead counts what the dead letters hold of each consumer, and tells how
// full their stream is; false if that is not known.
func (g *gauges) countDead(ctx context.Context) (use streamUse, ok bool) {
	stream, err := g.s.nats.js.Stream(ctx, jetqueue.DeadStreamName(g.s.cfg.NATS.Namespace))
	if err != nil {
		return use, false // there is none before the first consumer
	}
	prefix := g.s.cfg.NATS.Namespace + ".dead."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return use, false
	}
	dead := map[string]uint64{}
	for subject, n := range info.State.Subjects {
		consumer, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		dead[consumer] += n
	}
	g.dead.Store(&dead)
	return streamUse{stream: info.Config.Name, bytes: info.State.Bytes, max: uint64(max(info.Config.MaxBytes, 0))}, true
}

// Descriptions of the gauges; see [gauges.Collect].
var (
	breakerState = describe("breaker_state", "1 for the state that the consumer's breaker is in.", "consumer", "state")
	openWindow   = describe("breaker_open_window_seconds", "Length of the open window, 0 while closed.", "consumer")
	depth        = describe("fallback_depth", "Triggers parked in the fallback queue.", "consumer")
	fallbackSize = describe("fallback_bytes", "Bytes parked in the fallback queue.", "consumer")
	oldest       = describe("fallback_oldest_seconds", "Age of the oldest parked trigger.", "consumer")
	laneDepth    = describe("lane_depth", "Triggers that wait in memory for their call.", "consumer")
	blocked      = describe("fallback_blocked", "1 while the partitions wait for room in the consumer's queue.", "consumer")
	disabled     = describe("consumer_disabled", "1 after the consumer answered 410 Gone, until a reload.", "consumer")
	lag          = describe("progress_lag_seconds", "Age of the oldest trigger of the partition that is not settled.", "partition")
	devices      = describe("devices", "Devices that the partition knows.", "partition")
	fenceCount   = describe("fences", "Fences in the index.")
	storeUsed    = describe("store_used_ratio", "How full a stream is, 0 to 1.", "stream")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tripline_"+name, help, labels, nil)
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		breakerState, openWindow, depth, fallbackSize, oldest, laneDepth, blocked, disabled, lag, devices, fenceCount, storeUsed,
	} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if g.s.roster == nil || g.s.index == nil {
		return // still starting
	}
	for _, m := range g.s.roster.all() {
		g.collectConsumer(m.name, m.outlet.Status(), set)
	}
	for i, p := range g.s.held.each() {
		status := p.Status()
		set(lag, status.Lag.Seconds(), strconv.Itoa(i))
		set(devices, float64(status.Devices), strconv.Itoa(i))
	}
	set(fenceCount, float64(g.s.index.Snapshot().Len()))
	for _, u := range *g.stores.Load() {
		set(storeUsed, u.ratio(), u.stream)
	}
}

func (g *gauges) collectConsumer(name string, s fallback.Status, set func(*prometheus.Desc, float64, ...string)) {
	state := s.Breaker.State.String()
	for _, other := range []string{"closed", "open", "half_open"} {
		set(breakerState, flag(other == state), name, other)
	}
	window := 0.0
	if state != "closed" {
		window = s.Breaker.Window.Seconds()
	}
	set(openWindow, window, name)
	set(depth, float64(s.Backlog), name)
	set(fallbackSize, float64(s.BacklogBytes), name)
	age := 0.0
	if s.Backlog > 0 && !s.Oldest.IsZero() {
		age = time.Since(s.Oldest).Seconds()
	}
	set(oldest, age, name)
	set(laneDepth, float64(s.Lane), name)
	set(blocked, flag(s.Blocked), name)
	set(disabled, flag(s.Disabled), name)
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

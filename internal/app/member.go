package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/jetqueue"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/metrics"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

// member is one configured consumer at work.
type member struct {
	name   string
	cfg    config.Consumer
	match  *router.Match
	sink   sink
	queue  *jetqueue.Queue
	outlet *fallback.Outlet
	relay  *relay     // what the partitions offer to; outlives the outlet
	turns  *turnstile // nil without other replicas

	diverted atomic.Uint64

	stop    context.CancelFunc // nil before start
	done    chan struct{}      // closed when the outlet has returned
	beside  sync.WaitGroup     // what runs beside it
	err     error              // what it returned; read it after done
	retired atomic.Bool        // it is meant to end
	finish  func() error       // see end; more than once does nothing more
}

// parts is what members are built with; all consumers share it.
type parts struct {
	namespace  string
	version    string
	partitions int
	grace      time.Duration
	store      *nats.Conn // for the fallback queues
	sinks      *nats.Conn // for NATS sinks
	metrics    *metrics.Metrics
	hub        *live.Hub
	observer   Observer
	log        *slog.Logger
	replicas   int // of the streams
	// holds says whether a partition is leased to this process; nil: all are
	// its own.
	holds    func(partition int) bool
	breakers *fleetBreakers // nil as well
}

// newMember builds a consumer: its sink, behind its breaker, with its queue.
func newMember(ctx context.Context, p *parts, c config.Consumer, budget config.Budget) (*member, error) {
	match, err := CompileMatch(c)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	m := &member{name: c.Name, cfg: c, match: match, done: make(chan struct{})}
	m.finish = sync.OnceValue(m.end)
	if m.sink, err = newSink(c, p.namespace, p.version, p.sinks); err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	m.queue, err = jetqueue.Open(ctx, p.store, jetqueue.Config{
		Namespace:    p.namespace,
		Consumer:     c.Name,
		MaxBytes:     int64(budget.Fallback[c.Name]),
		DeadMaxBytes: int64(budget.Dead),
		Replicas:     p.replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	m.outlet = fallback.New(m.sink, breaker.New(m.breakerConfig(p)), p.queue(m.queue), fallback.With(m.outletConfig(p)))
	m.relay = newRelay(m.outlet)
	return m, nil
}

func (m *member) breakerConfig(p *parts) breaker.Config {
	b := m.cfg.Breaker
	none := func(v float64) float64 {
		if v == 0 {
			return breaker.None
		}
		return v
	}
	settle := b.Settle
	if settle == 0 {
		settle = breaker.None
	}
	return breaker.Config{
		P99: b.P99, Timeout: max(m.cfg.Timeout, b.P99), MinSamples: b.MinSamples,
		Probes: b.Probes, Successes: b.Successes,
		Base: b.Base, Max: b.Max, Factor: b.Factor, Jitter: none(b.Jitter), Settle: settle,
		Hooks: breaker.Hooks{Transition: func(t breaker.Transition) { m.changed(p, t) }},
	}
}

func (m *member) outletConfig(p *parts) fallback.Config {
	f := m.cfg.Fallback
	onFull := map[string]fallback.OnFull{
		config.OnFullBlock: fallback.Block, config.OnFullDead: fallback.Dead, config.OnFullDrop: fallback.Drop,
	}[f.OnFull]
	grace := p.grace
	if grace == 0 {
		grace = fallback.None
	}
	partitions := p.partitions
	if p.holds != nil {
		partitions = fallback.None
	}
	return fallback.Config{
		Partitions:    partitions,
		Holds:         p.holds,
		Gate:          m.gate(p),
		Concurrency:   m.cfg.Concurrency,
		MaxRate:       m.cfg.MaxRate,
		MaxAttempts:   f.MaxAttempts,
		MaxAge:        f.MaxAge,
		OnFull:        onFull,
		ShutdownGrace: grace,
		Health:        m.sink.health,
		Hooks:         m.hooks(p),
	}
}

// gate lets one replica at a time probe.
func (m *member) gate(p *parts) func() bool {
	if p.breakers == nil {
		return nil
	}
	look := func() breaker.Snapshot { return m.outlet.Breaker().Snapshot(m.outlet.Now()) }
	m.turns = newTurnstile(p.breakers.keeper, m.name, look, p.log)
	return m.turns.open
}

// hooks counts, tells the live page and the observer, and logs what an
// operator has to know.
func (m *member) hooks(p *parts) fallback.Hooks {
	h := p.metrics.Outlet(m.name)
	counted := h
	h.Delivered = func(d fallback.Delivery) {
		counted.Delivered(d)
		if d.Probe {
			p.hub.Probe(live.Probe{
				Consumer: m.name, At: time.Now(), Verdict: d.Verdict.String(),
				LatencyMS: float64(d.Latency) / float64(time.Millisecond),
			})
		}
		if p.observer.Delivered != nil {
			p.observer.Delivered(m.name, d)
		}
	}
	h.Diverted = func(r fallback.Reason) {
		m.diverted.Add(1)
		counted.Diverted(r)
		if p.observer.Diverted != nil {
			p.observer.Diverted(m.name, r)
		}
	}
	h.Died = func(r fallback.DeadReason) {
		counted.Died(r)
		p.log.Warn("a trigger became a dead letter", "consumer", m.name, "reason", r)
	}
	h.Disabled = func() {
		p.log.Error("the consumer answered 410 Gone: it is off until a reload, its triggers are parked", "consumer", m.name)
	}
	h.QueueError = func(doing string, err error) {
		p.log.Warn("the fallback queue did not answer well; the step is repeated", "consumer", m.name, "doing", doing, "err", natsconn.Explain(err))
	}
	h.Panicked = func(value any, stack []byte) {
		p.log.Error("a sink panicked", "consumer", m.name, "panic", value, "stack", string(stack))
	}
	return h
}

// changed is told each change of the breaker's state.
func (m *member) changed(p *parts, t breaker.Transition) {
	p.metrics.Breaker(m.name, t)
	if p.breakers != nil {
		p.breakers.tell(m.name, t)
	}
	level := slog.LevelInfo
	if t.To == breaker.Open {
		level = slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "breaker", "consumer", m.name,
		"from", t.From, "to", t.To, "reason", t.Text, "window", t.Window)
	change := live.Breaker{
		Consumer: m.name, At: time.Now(), From: t.From.String(), To: t.To.String(),
		Reason: t.Reason.String(), Text: t.Text, Rung: t.Rung,
	}
	if t.To == breaker.Open {
		until := m.date(t.Until)
		change.Until = &until
	}
	p.hub.Breaker(change)
	if p.observer.Breaker != nil {
		p.observer.Breaker(m.name, t)
	}
}

// date turns a time of the outlet's clock into one of the calendar.
func (m *member) date(at time.Duration) time.Time {
	return time.Now().Add(at - m.outlet.Now())
}

// start runs the outlet in the background.
func (m *member) start(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	go func() {
		defer close(m.done)
		m.err = m.outlet.Run(ctx)
	}()
	if m.turns != nil {
		m.beside.Go(func() { m.turns.run(ctx) })
	}
}

// end stops the outlet, waits until what it holds is delivered or parked, and
// gives back what belongs to it.
func (m *member) end() error {
	if m.stop != nil {
		m.stop()
		<-m.done
		m.beside.Wait()
	}
	err := m.err
	if m.sink.close != nil {
		m.sink.close.Close()
	}
	m.queue.Close()
	if err != nil {
		return fmt.Errorf("consumer %s: %w", m.name, err)
	}
	return nil
}

// CompileMatch turns a consumer's match into the router's.
func CompileMatch(c config.Consumer) (*router.Match, error) {
	entries := make([]router.MatchConfig, len(c.Match))
	for i, e := range c.Match {
		entries[i] = router.MatchConfig{
			Fences: e.Fences, Tags: e.Tags, Devices: e.Devices,
			Transitions: e.Transitions, Where: e.Where,
			Priority: map[string]router.Priority{"high": router.High, "low": router.Low}[e.Priority],
		}
	}
	return router.CompileMatch(entries...)
}

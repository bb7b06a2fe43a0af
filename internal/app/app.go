// Package app wires the parts together and runs them. It is the only place
// that knows every package:
//
//	config ── nats ──┬─ ingest ──> partitions ──> outlets ──> sinks
//	                 ├─ state  <── (progress)       │ ▲
//	                 └─ queues <────── (park) ──────┘ └── (replay)
//	admin: health, metrics, API and live page, beside all of them
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/admin"
	"github.com/tripline/tripline/internal/admin/live"
	"github.com/tripline/tripline/internal/admin/page"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/lease"
	"github.com/tripline/tripline/internal/metrics"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/state"
	"github.com/tripline/tripline/router"
)

// closeTimeout bounds the last commit of the partitions: it stores whatever
// devices have reported in the last half minute, a million take a while.
const closeTimeout = time.Minute

// Options are what doesn't stand in the configuration.
type Options struct {
	Version  string
	Log      *slog.Logger
	Observer Observer
	// Reload reads the configuration again, when Hangup gets a value or the API
	// asks for it. nil: this service doesn't reload.
	Reload func() (*config.Config, error)
	Hangup <-chan os.Signal
	// Leases and Home stand in for the defaults of the leases that replicas
	// hold; tests are in a hurry.
	Leases lease.Timing
	Home   func() lease.Home
	// Started is told once everything runs. It may be nil.
	Started func(Started)
}

// Started says where a running service is found.
type Started struct {
	NATS   string // URL of the server in use, without secrets
	Admin  string // base URL of the admin server
	Fences int
	// Consumers is the state of the consumers at the moment.
	Consumers func() []live.Consumer
}

// service is everything that runs.
type service struct {
	cfg     *config.Config
	opts    Options
	log     *slog.Logger
	metrics *metrics.Metrics
	hub     *live.Hub
	started time.Time

	nats   *connections
	budget config.Budget
	store  *state.Store
	source source
	trim   *ingest.Trim // nil in core mode
	index  *geofence.Index
	fences *fences
	roster *roster
	held   *held
	keeper *lease.Keeper // nil: all partitions run here, always
	gauges *gauges
	admin  *admin.Server

	running   atomic.Bool
	stopping  atomic.Bool
	reloading sync.Mutex // one at a time; guards what a reload changes in cfg
}

// source is where locations come from.
type source interface {
	router.Source
	Run(ctx context.Context) error
	// Reject publishes a location that was refused when it was judged.
	Reject(fix *geofence.Fix, why *ingest.Refusal)
	// Listening is closed once what is sent is heard.
	Listening() <-chan struct{}
}

// Run builds everything and runs it until ctx ends or a part fails. When ctx
// ends it stops in order: nothing new is read, what the outlets hold is
// delivered or parked, progress is saved.
func Run(ctx context.Context, cfg *config.Config, opts Options) (err error) {
	s := &service{
		cfg: cfg, opts: opts, log: opts.Log,
		metrics: metrics.New(), started: time.Now(),
		held: newHeld(cfg.Ingest.Partitions),
	}
	defer s.close()
	defer easeCollections()()
	if err := s.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it was starting
		}
		return err
	}
	return s.run(ctx)
}

// open builds the parts, in the order in which they need each other.
func (s *service) open(ctx context.Context) (err error) {
	steps := []func(context.Context) error{
		s.openAdmin, s.readFences, s.openNATS, s.openStreams, s.openFences, s.openLeases, s.openConsumers, s.openPartitions,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return natsconn.Explain(err)
		}
	}
	return nil
}

func (s *service) openAdmin(context.Context) (err error) {
	s.hub = live.New(live.Config{
		Version: s.opts.Version, Namespace: s.cfg.NATS.Namespace, Started: s.started,
		Positions: s.positions, GoneAfter: s.goneAfter(),
	})
	s.gauges = newGauges(s)
	livePage, err := page.Handler(page.Options{TileURL: s.cfg.Admin.Tiles.URL, TileCredit: s.cfg.Admin.Tiles.Credit})
	if err != nil {
		return fmt.Errorf("the live page: %w", err)
	}
	s.admin, err = admin.Listen(admin.Config{
		Listen:  s.cfg.Admin.Listen,
		Token:   string(s.cfg.Admin.Token),
		Handler: s.api(),
		Page:    livePage,
		Ready:   s.ready,
		Log:     s.log,
	})
	return err
}

// run keeps everything going, and takes it down in order.
func (s *service) run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	adminCtx, stopAdmin := context.WithCancel(background)
	defer stopAdmin()
	var beside errgroup.Group // lives until the end
	beside.Go(func() error { return s.admin.Run(adminCtx) })
	beside.Go(func() error { return s.gauges.run(adminCtx) })
	s.roster.start(background)

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.source.Run(groupCtx) })
	s.runPartitions(groupCtx, group)
	s.running.Store(true)
	group.Go(func() error { return s.fences.run(groupCtx) })
	group.Go(func() error { return s.roster.watch(groupCtx) })
	group.Go(func() error { return s.awaitHangup(groupCtx) })
	group.Go(func() error { return s.repair(groupCtx) })
	group.Go(func() error { s.announce(groupCtx); return nil })

	err := group.Wait()
	s.stopping.Store(true)
	s.log.Info("stopping: delivering or parking what is in memory", "grace", s.cfg.ShutdownGrace)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	err = errors.Join(err, s.roster.finish(), s.saveProgress(background))
	stopAdmin()
	return errors.Join(err, beside.Wait())
}

// awaitHangup reloads the configuration on each signal.
func (s *service) awaitHangup(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.opts.Hangup:
			if err := s.reload(ctx); err != nil {
				s.log.Error(err.Error())
			}
		}
	}
}

// announce says that everything runs, once it does.
func (s *service) announce(ctx context.Context) {
	select {
	case <-s.source.Listening():
	case <-ctx.Done():
		return
	}
	s.log.Info("running",
		"nats", s.nats.url(), "admin", s.adminURL(), "fences", s.index.Snapshot().Len(),
		"consumers", len(s.cfg.Consumers), "partitions", s.held.total(), "durable", s.cfg.Ingest.Durable)
	if s.opts.Started != nil {
		s.opts.Started(Started{
			NATS: s.nats.url(), Admin: s.adminURL(), Fences: s.index.Snapshot().Len(),
			Consumers: s.gauges.consumers,
		})
	}
}

func (s *service) adminURL() string { return "http://" + s.admin.Addr().String() }

// saveProgress stores what the partitions have reached after the outlets have
// let go of everything.
func (s *service) saveProgress(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := s.held.close(ctx); err != nil {
		return fmt.Errorf("saving the progress: %w; what is not saved is read again at the next start", err)
	}
	return nil
}

// close gives back what open took, however far that came.
func (s *service) close() {
	if s.admin != nil {
		s.admin.Close()
	}
	if s.nats != nil {
		s.nats.close()
	}
}

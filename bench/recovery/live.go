package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

const (
	liveAfter = 50 * time.Second // played after healing at most
	liveCalm  = 3 * time.Second  // once all are closed and drained
	lookEvery = 20 * time.Millisecond
	liveSeed  = 1
)

// liveConfig is the router's. The two consumers that the benchmark's own
// outlets serve are fed over NATS; that never fails here.
const liveConfig = `
nats: {store_dir: %[1]q, listen: "127.0.0.1:0", max_store: 1GiB}
fences: [{file: %[2]q}]
admin: {listen: "127.0.0.1:0"}
shutdown_grace: 1s
consumers:
  - {name: eager, nats: {subject: "recovery.eager.{device}", timeout: 5s}, breaker: {p99: 2s}}
  - {name: backoff-cap, nats: {subject: "recovery.backoff-cap.{device}", timeout: 5s}, breaker: {p99: 2s}}
  - name: tripline-hint
    webhook: {url: "%[3]s/triggers", health: "%[3]s/health", timeout: %[4]s}
    breaker: {p99: %[5]s}
`

const liveIntro = `In real time: one fleet, one router with its NATS server, three HTTP consumers that are sick for %v and then
come back with a cold cache. tripline+hint is the router's own webhook consumer. The router can't be configured to
be eager, nor to do without its ramp: eager and backoff+cap are the benchmark's outlets, which get the same
triggers from the router over NATS and call their consumers by HTTP. At most %v.
`

// liveRun is the headline scenario in real time.
type liveRun struct {
	sc        *scenario
	atMost    time.Duration // after healing
	out       io.Writer
	line      func(string) // shows a line of progress
	began     time.Time
	backends  []*backend // of eager, backoff+cap, tripline+hint
	outsiders []*outsider
	insider   *insider
	late      []time.Duration // how late each look was
}

// liveNames are the policies, in the order of the columns.
var liveNames = []string{"eager", "backoff+cap", "tripline+hint"}

// playLive plays a scenario through the real router, for at most that long
// after the consumers have healed.
func playLive(ctx context.Context, sc *scenario, after time.Duration, out io.Writer, line func(string)) error {
	fmt.Fprintf(out, liveIntro, sc.outage, sc.outage+after)
	dir, err := os.MkdirTemp("", "recovery-live-")
	if err != nil {
		return fmt.Errorf("making a temporary store: %w", err)
	}
	defer os.RemoveAll(dir)
	// The consumers' clocks begin when the fleet does; the router needs a
	// moment before.
	r := &liveRun{sc: sc, atMost: after, out: out, line: line, began: time.Now().Add(3 * time.Second)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.build(ctx); err != nil {
		return err
	}
	defer r.close()
	cfg, err := r.config(dir)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	started := make(chan app.Started, 1)
	group.Go(func() error {
		defer cancel()
		return app.Run(ctx, cfg, app.Options{
			Version: "recovery", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
			Observer: r.insider.observer(),
			Started:  func(s app.Started) { started <- s },
		})
	})
	group.Go(func() error {
		defer cancel()
		select {
		case s := <-started:
			return r.play(ctx, s)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// build serves the consumers, and makes the outlets around two of them.
func (r *liveRun) build(ctx context.Context) error {
	for i, name := range liveNames {
		b, err := serveBackend(ctx, r.sc, r.began, uint64(liveSeed+i))
		if err != nil {
			return fmt.Errorf("serving the consumer of %s: %w", name, err)
		}
		r.backends = append(r.backends, b)
		if name == "tripline+hint" {
			continue
		}
		ds := disciplines()
		d := ds[slices.IndexFunc(ds, func(d discipline) bool { return d.name == name })]
		r.outsiders = append(r.outsiders, newOutsider(r.sc, d, b.url+"/triggers", r.began, uint64(liveSeed+i)))
	}
	r.insider = newInsider("tripline-hint", r.sc, r.began)
	return nil
}

func (r *liveRun) close() {
	for _, b := range r.backends {
		b.close()
	}
}

func (r *liveRun) config(dir string) (*config.Config, error) {
	city := filepath.Join(dir, "city.geojson")
	if err := os.WriteFile(city, []byte(liveCity), 0o600); err != nil {
		return nil, fmt.Errorf("writing the city: %w", err)
	}
	text := fmt.Sprintf(liveConfig, filepath.Join(dir, "store"), city, r.backends[2].url, clientTimeout, limit)
	noEnvironment := func(string) (string, bool) { return "", false }
	return config.Parse("recovery", []byte(text), config.WithEnv(noEnvironment))
}

// play drives the fleet and looks on until all have recovered or time is up.
func (r *liveRun) play(ctx context.Context, s app.Started) error {
	nc, err := nats.Connect(s.NATS, nats.Name("recovery-fleet"))
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", s.NATS, err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Until(r.began)+r.sc.outage+r.atMost)
	defer cancel()
	var group errgroup.Group
	for _, b := range r.backends {
		group.Go(func() error { b.run(ctx); return nil })
	}
	for i, o := range r.outsiders {
		group.Go(func() error { o.run(ctx); o.close(); return nil })
		subject := []string{"recovery.eager.*", "recovery.backoff-cap.*"}[i]
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { o.take(ctx, m) }); err != nil {
			cancel()
			return errors.Join(fmt.Errorf("subscribing to %s: %w", subject, err), group.Wait())
		}
	}
	group.Go(func() error {
		select {
		case <-time.After(time.Until(r.began)):
		case <-ctx.Done():
			return nil
		}
		defer cancel()
		return drive(ctx, nc, r.sc.live, liveSeed)
	})
	r.watch(ctx, s)
	cancel()
	if err := group.Wait(); err != nil {
		return err
	}
	r.report()
	return nil
}

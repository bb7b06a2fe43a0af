package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

// The outage that the demo shows.
const (
	sickFrom  = 10 * time.Second
	sickUntil = 30 * time.Second
	sickDelay = 900 * time.Millisecond
	patient   = "billing"
)

const (
	vehicles = 1000
	// wrapUp is how long before the end of a limited run the fleet stops, so
	// that what it caused is delivered by then.
	wrapUp = 4 * time.Second
	// drainLimit bounds the wait for what was expected.
	drainLimit = 30 * time.Second
)

// Options say how a demo runs.
type Options struct {
	For     time.Duration // 0: until the context ends
	Seed    uint64
	Admin   string // address of the live page, host:port
	Out     io.Writer
	Log     *slog.Logger
	Version string
}

// configuration is what an operator would write for the demo's city. The
// places are filled in when the demo knows them.
const configuration = `
nats: {store_dir: %[1]q, listen: "127.0.0.1:0", max_store: 1GiB}
fences: [{file: %[2]q}]
admin: {listen: %[3]q}
consumers:
  - name: dispatch
    match: {tags: [depot]}
    webhook: {url: "%[4]s/triggers", timeout: 2s}
    breaker: {p99: 500ms}
  - name: billing
    match: {tags: [zone], transitions: [enter, exit, dwell]}
    webhook: {url: "%[5]s/triggers", timeout: 2s, health: "%[5]s/health"}
    breaker: {p99: 500ms}
  - name: analytics
    webhook: {url: "%[6]s/triggers", timeout: 2s}
    breaker: {p99: 500ms}
`

// AddressError says that the live page can't be served where it was asked for.
type AddressError struct{ error }

func (e AddressError) Unwrap() error { return e.error }

// Run shows the demo until ctx ends, or nobody reads what it tells any more. It
// returns an error if anything was lost.
func Run(ctx context.Context, opts Options) (err error) {
	if err := checkAdmin(opts.Admin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tripline-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary store: %w", err)
	}
	defer os.RemoveAll(dir)

	var consumers []*consumer
	for _, name := range []string{"dispatch", patient, "analytics"} {
		c, err := serveConsumer(name)
		if err != nil {
			return fmt.Errorf("serving the consumer %s: %w", name, err)
		}
		defer c.close()
		consumers = append(consumers, c)
	}
	cfg, err := parse(dir, opts.Admin, consumers)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	story := newStory(opts.Out, stop, consumers)
	started := make(chan app.Started, 1)
	group, groupCtx := errgroup.WithContext(context.WithoutCancel(ctx))
	appCtx, stopApp := context.WithCancel(groupCtx)
	defer stopApp()
	group.Go(func() error {
		return app.Run(appCtx, cfg, app.Options{
			Version:  opts.Version,
			Log:      opts.Log,
			Observer: story.observer(),
			Started:  func(s app.Started) { started <- s },
		})
	})
	group.Go(func() error {
		defer stopApp()
		select {
		case s := <-started:
			return play(ctx, groupCtx, s, opts, story, consumers)
		case <-groupCtx.Done():
			return nil // starting failed, and says why
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// checkAdmin tries the live page's address before anything is started, so that
// what is wrong with it is told in the words of the command line.
func checkAdmin(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return AddressError{fmt.Errorf("--admin %s is no HOST:PORT, as in 127.0.0.1:8080", address)}
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return AddressError{fmt.Errorf("--admin %s is reachable from other machines, and the demo has no token: give 127.0.0.1 and a port", address)}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return AddressError{fmt.Errorf("--admin %s can't be listened on: %w; stop what uses it, or leave --admin out, which takes a free port", address, errors.Unwrap(err))}
	}
	return l.Close()
}

func parse(dir, admin string, consumers []*consumer) (*config.Config, error) {
	city := filepath.Join(dir, "city.geojson")
	if err := os.WriteFile(city, Fences(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the city: %w", err)
	}
	text := fmt.Sprintf(configuration, filepath.Join(dir, "store"), city, admin,
		consumers[0].url, consumers[1].url, consumers[2].url)
	noEnvironment := func(string) (string, bool) { return "", false }
	return config.Parse("demo", []byte(text), config.WithEnv(noEnvironment))
}

// play drives the fleet until ctx or the time ends, with the outage in
// between, waits for what it caused, and tells how it went.
func play(ctx, running context.Context, s app.Started, opts Options, story *story, consumers []*consumer) error {
	fleet, err := newDriver(s.NATS, opts.Seed, story.begin)
	if err != nil {
		return err
	}
	defer fleet.close()
	story.intro(s, opts)

	driving := ctx
	if opts.For > 0 {
		var cancel context.CancelFunc
		driving, cancel = context.WithTimeout(ctx, max(opts.For-wrapUp, time.Second))
		defer cancel()
	}
	sick := consumers[1]
	falls := time.AfterFunc(sickFrom, func() { sick.delay.Store(int64(sickDelay)); story.sick(sickDelay) })
	heals := time.AfterFunc(sickUntil, func() { sick.delay.Store(0); story.healed() })
	watch := time.AfterFunc(time.Second, func() {
		for _, c := range consumers {
			c.watch(true)
		}
	})
	defer watch.Stop()
	reporting, stopReports := context.WithCancel(running)
	reports := make(chan struct{})
	go func() { defer close(reports); story.report(reporting, s.Consumers) }()

	err = fleet.drive(driving, running)
	falls.Stop()
	for _, c := range consumers {
		c.watch(false)
	}
	if heals.Stop() && sick.delay.Swap(0) > 0 {
		story.healed()
	}
	if err == nil {
		story.say("", "the fleet has stopped; waiting for what it caused")
		err = drain(running, fleet, consumers)
	}
	stopReports()
	<-reports
	if err != nil {
		return err
	}
	return story.summary(fleet, consumers)
}

// drain waits until every consumer has what it should get, or it takes too
// long.
func drain(ctx context.Context, fleet *driver, consumers []*consumer) error {
	deadline := time.After(drainLimit)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		missing := 0
		for _, c := range consumers {
			missing += c.missing(fleet.expected[c.name])
		}
		if missing == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-deadline:
			return nil // the summary says what is missing
		case <-ctx.Done():
			return errors.New("tripline stopped before everything was delivered")
		}
	}
}

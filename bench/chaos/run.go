package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// options say how a run goes.
type options struct {
	Kills    int
	Seed     uint64
	Devices  int
	Rate     float64 // messages per second
	Longest  time.Duration
	Drain    time.Duration // the wait for the next trigger at the end
	Replicas int           // routers
	NATS     int           // servers of a cluster; 0 or 1: none
	External bool
	Race     bool
	Keep     bool
	Router   string // a binary that is there already
	Out      io.Writer
}

// run is one run of the bench.
type run struct {
	options
	begun      time.Time
	dir        string
	rng        *rand.Rand // of the kills; run's own goroutine uses it
	consumers  []*consumer
	expect     *expectations
	fleet      *fleet
	router     *tripline // that something happens to now
	routers    []*tripline
	server     *server    // nil without --external
	members    []*process // of the cluster of servers
	faults     int        // of these
	kills      int
	again      atomic.Uint64  // the last position stored when a router was started
	stops      int            // in order
	background sync.WaitGroup // what an operator has asked for

	stopReading func() // nil before openSubjects
	reading     sync.WaitGroup

	saying sync.Mutex
}

func (r *run) since() time.Duration { return time.Since(r.begun) }

func (r *run) say(format string, args ...any) {
	r.saying.Lock()
	defer r.saying.Unlock()
	fmt.Fprintf(r.Out, "%6.1fs  "+format+"\n", append([]any{r.since().Seconds()}, args...)...)
}

// execute does a whole run. The error says that it could not be done, not that
// something was lost: that stands in the verdict.
func execute(ctx context.Context, opts options) (v *verdict, err error) {
	r := &run{options: opts, begun: time.Now(), rng: rand.New(rand.NewPCG(opts.Seed, 0))}
	if r.dir, err = os.MkdirTemp("", "tripline-chaos-"); err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() {
		if r.Keep {
			r.say("kept: %s", r.dir)
			return
		}
		os.RemoveAll(r.dir)
	}()
	if err := r.open(ctx); err != nil {
		r.close()
		return nil, err
	}
	defer r.close()
	if err := r.storm(ctx); err != nil {
		return nil, err
	}
	if err := r.drain(ctx); err != nil {
		return nil, err
	}
	v, err = r.judge(ctx)
	if err != nil {
		return nil, err
	}
	v.fail(r.stopAll())
	return v, nil
}

// open builds all that takes part and starts the router for the first time.
func (r *run) open(ctx context.Context) (err error) {
	list := downstreams()
	checks := map[string]wants{}
	for i, d := range list {
		c, err := serveConsumer(d, r.Seed, uint64(i), r.since, &r.again)
		if err != nil {
			return err
		}
		r.consumers = append(r.consumers, c)
		checks[d.name] = d.wants
	}
	r.expect = newExpectations(checks)

	binary := r.Router
	if binary == "" {
		r.say("seed %d; building the router", r.Seed)
		binary = filepath.Join(r.dir, "tripline")
		if err := build(ctx, "github.com/tripline/tripline/cmd/tripline", binary, r.Race); err != nil {
			return err
		}
	}
	address, natsConfig, err := r.openNATS(ctx)
	if err != nil {
		return err
	}
	if err := r.openRouters(binary, natsConfig); err != nil {
		return err
	}
	if err := r.allReady(ctx); err != nil {
		return err
	}
	if r.fleet, err = newFleet("nats://"+address, r.Seed, r.Devices, r.Rate, r.expect, r.since); err != nil {
		return err
	}
	return r.openSubjects(ctx)
}

// openSubjects begins to serve the consumers that are reached over NATS.
func (r *run) openSubjects(ctx context.Context) error {
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stopReading = stop
	for _, c := range r.consumers {
		switch c.kind {
		case request:
			if err := c.replies(r.fleet.nc); err != nil {
				return err
			}
		case stream:
			archive, err := makeArchive(ctx, r.fleet.js)
			if err != nil {
				return err
			}
			r.reading.Go(func() { c.readArchive(reading, archive) })
		}
	}
	return nil
}

// openNATS says where the fleet publishes, and how the router gets there.
func (r *run) openNATS(ctx context.Context) (address, config string, err error) {
	if r.clustered() {
		return r.openMembers(ctx)
	}
	if r.External {
		return r.openServer(ctx)
	}
	if address, err = freeAddress(); err != nil {
		return "", "", err
	}
	return address, fmt.Sprintf(`{store_dir: %q, listen: %q, max_store: 2GiB}`, filepath.Join(r.dir, "store"), address), nil
}

func (r *run) close() {
	for _, t := range r.routers {
		t.close()
	}
	r.background.Wait()
	for _, t := range r.routers {
		t.http.CloseIdleConnections()
	}
	if r.stopReading != nil {
		r.stopReading()
		r.reading.Wait()
	}
	if r.fleet != nil {
		r.fleet.close()
	}
	r.closeServer()
	for _, m := range r.members {
		m.close()
	}
	for _, c := range r.consumers {
		c.close()
	}
}

// storm publishes, torments the consumers, and kills, until all kills are
// done and all that was published is stored. Some kills come after the last
// message, while the backlog is replayed.
func (r *run) storm(ctx context.Context) error {
	late := r.Kills / 4
	r.say("%d devices, %.0f messages a second, %d consumers, %d kills", r.Devices, r.Rate, len(r.consumers), r.Kills)
	group, running := errgroup.WithContext(ctx)
	driving, stopDriving := context.WithCancel(running)
	group.Go(func() error { return r.fleet.drive(driving, running) })
	tempers, stopTempers := context.WithCancel(running)
	for _, c := range r.consumers {
		if !c.calm {
			group.Go(func() error { c.temper.run(tempers); return nil })
		}
	}
	if r.server != nil {
		group.Go(func() error { return r.torment(tempers, running) })
	}
	if len(r.members) > 0 {
		group.Go(func() error { return r.tormentMembers(tempers, running) })
	}
	reporting, stopReports := context.WithCancel(running)
	group.Go(func() error { r.report(reporting); return nil })
	group.Go(func() error {
		defer stopDriving()
		defer stopTempers()
		defer stopReports()
		for r.kills < r.Kills-late {
			if err := r.strike(running); err != nil {
				return err
			}
		}
		return r.pause(running, r.between(500*time.Millisecond, r.Longest))
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.say("published: %d messages stored, %d had to be sent again; all consumers are well", r.fleet.stored.Load(), r.fleet.retries.Load())
	for r.kills < r.Kills {
		if err := r.strike(ctx); err != nil {
			return err
		}
	}
	if err := r.allReady(ctx); err != nil {
		return err
	}
	if r.server != nil { // once more, and nobody kills anything that would put it right
		if err := r.blackOut(ctx, time.Second); err != nil {
			return err
		}
		if err := r.router.awaitReady(ctx); err != nil {
			return err
		}
	}
	return r.resumeAll(ctx)
}

// strike kills the router at a random moment, now and then while it is
// starting, and starts it again.
func (r *run) strike(ctx context.Context) error {
	r.pick()
	for range r.rng.IntN(3) {
		if err := r.nuisance(ctx); err != nil {
			return err
		}
	}
	early := r.rng.IntN(5) == 0
	wait := r.between(200*time.Millisecond, r.Longest)
	if early {
		wait = r.between(0, 500*time.Millisecond)
	} else if err := r.router.awaitReady(ctx); err != nil {
		return err
	}
	if err := r.pause(ctx, wait); err != nil {
		return err
	}
	r.router.kill()
	r.kills++
	when := "running"
	if early {
		when = "starting"
	}
	r.say(r.router.name+": kill %d of %d, %d ms after it was seen %s; %d messages stored, %d deliveries due so far, %d outstanding",
		r.kills, r.Kills, wait.Milliseconds(), when, r.fleet.stored.Load(), r.expect.total(), r.outstanding())
	if err := r.pause(ctx, r.between(0, 300*time.Millisecond)); err != nil {
		return err
	}
	return r.router.start()
}

func (r *run) between(low, high time.Duration) time.Duration {
	return low + time.Duration(r.rng.Int64N(int64(max(high-low, 1))))
}

// pause waits, unless ctx or the router ends.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-r.router.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *run) outstanding() int {
	n := 0
	for _, c := range r.consumers {
		n += len(c.missing(r.expect.of(c.name)))
	}
	return n
}

// report says now and then where things are.
func (r *run) report(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.say("%d messages stored, %d deliveries due, %d outstanding", r.fleet.stored.Load(), r.expect.total(), r.outstanding())
		}
	}
}

// drain waits until every consumer has what it has to get, nothing comes any
// more, or it takes too long; then a little longer, for what nobody expects.
func (r *run) drain(ctx context.Context) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	begun, last, since := r.since(), r.outstanding(), r.since()
	said, redriven := begun, begun
	for {
		left := r.outstanding()
		now := r.since()
		if now-redriven > 2*time.Second {
			redriven = now
			r.redrive(ctx)
		}
		if left != last {
			last, since = left, now
		}
		switch {
		case left == 0:
			r.say("drained in %.1f s", (now - begun).Seconds())
			return r.pause(ctx, 1500*time.Millisecond)
		case now-begun > 4*r.Drain, now-since > r.Drain:
			r.say("gave up on %d deliveries after %.1f s: %s", left, (now - begun).Seconds(), r.router.consumers(ctx))
			return nil
		case now-said > 2*time.Second:
			said = now
			r.say("draining: %d outstanding", left)
		}
		select {
		case <-ticker.C:
		case err := <-r.router.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// redrive sends the dead letters of those who give up again. Each router does
// so for the partitions that it runs.
func (r *run) redrive(ctx context.Context) {
	for _, c := range r.consumers {
		if !c.givesUp || len(c.missing(r.expect.of(c.name))) == 0 {
			continue
		}
		for _, t := range r.routers {
			r.behind(ctx, t, "/api/v1/consumers/"+c.name+"/redrive")
		}
	}
}

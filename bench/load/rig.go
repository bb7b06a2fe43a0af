package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

// The fixes that the router judges, and those that the yardstick counts, go to
// subjects of the same length.
const (
	routedPrefix  = "location."
	countedPrefix = "counting."
	countedStream = "COUNTING"
)

const (
	partitions = 16
	// maxStore is what the streams may take on disk.
	maxStore = 24 << 30
	// quietFor is how long a count must stand still to count as final.
	quietFor = 500 * time.Millisecond
	// quietWithin bounds the wait for that.
	quietWithin = 2 * time.Minute
)

// setup says what runs.
type setup struct {
	city      city
	durable   bool
	embedded  bool // the NATS server runs inside the router; no yardstick
	consumers []consumer
	log       io.Writer // of the processes
}

// consumer is a downstream in the router's configuration.
type consumer struct {
	name string
	kind string // kindNATS, kindWebhook or kindHang
	// devices are ids with *; empty means all.
	devices string
}

// The kinds of consumer.
const (
	kindNATS    = "nats"
	kindWebhook = "webhook"
	kindHang    = "hang" // a webhook that accepts and never answers
)

// rig is all processes of one run. The router is one of them, and can be
// stopped and started again.
type rig struct {
	setup
	dir                                  string
	url, hooks, admin                    string
	startSeconds                         float64 // of the router's last start
	server, publisher, plain, taker, app *child
}

// newRig starts everything. close must be called in any case.
func newRig(ctx context.Context, s setup) (r *rig, err error) {
	r = &rig{setup: s}
	if r.dir, err = os.MkdirTemp("", "tripline-load-"); err != nil {
		return r, fmt.Errorf("making a folder: %w", err)
	}
	if err := s.city.writeFences(filepath.Join(r.dir, "city.geojson")); err != nil {
		return r, err
	}
	steps := []func(context.Context) error{r.startServer, r.startTaker, r.startRouter, r.startPublisher, r.startPlain}
	if s.embedded {
		steps = []func(context.Context) error{r.startTaker, r.startRouter, r.startPublisher}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

// launch starts a process and tells it what to begin with.
func (r *rig) launch(ctx context.Context, role string, c **child, arg, result any) (err error) {
	if *c, err = spawn(role, r.log); err != nil {
		return err
	}
	return (*c).call(ctx, "start", arg, result)
}

func (r *rig) startServer(ctx context.Context) error {
	return r.launch(ctx, "nats", &r.server, natsStart{Dir: filepath.Join(r.dir, "store"), MaxStore: maxStore}, &r.url)
}

// startTaker starts the consumers' process. It takes NATS triggers only from a
// server that is there before the router.
func (r *rig) startTaker(ctx context.Context) error {
	if err := r.launch(ctx, "consumer", &r.taker, nil, &r.hooks); err != nil || r.url == "" {
		return err
	}
	return r.taker.call(ctx, "connect", r.url, nil)
}

func (r *rig) startPublisher(ctx context.Context) error {
	return r.launch(ctx, "publish", &r.publisher, publishStart{URL: r.url, City: r.city}, nil)
}

// startPlain starts the yardstick.
func (r *rig) startPlain(ctx context.Context) error {
	if err := r.launch(ctx, "plain", &r.plain, r.url, nil); err != nil || !r.durable {
		return err
	}
	return r.makeCountedStream(ctx)
}

// close ends all processes and removes what they stored.
func (r *rig) close() {
	for _, c := range []*child{r.app, r.publisher, r.plain, r.taker, r.server} {
		if c != nil {
			c.end()
		}
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir) // a leftover in the temporary folder harms nobody
	}
}

// startRouter starts the router in a new process.
func (r *rig) startRouter(ctx context.Context) error {
	path := filepath.Join(r.dir, "tripline.yaml")
	if err := os.WriteFile(path, []byte(r.config()), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	var started routerStarted
	if err := r.launch(ctx, "router", &r.app, path, &started); err != nil {
		return err
	}
	if r.embedded {
		r.url = started.NATS
	}
	r.admin, r.startSeconds = started.Admin, started.Seconds
	return r.awaitPartitions(ctx)
}

// awaitPartitions returns when each partition judges what it is sent: in core
// mode it would pass over what comes earlier.
func (r *rig) awaitPartitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quietWithin)
	defer cancel()
	nc, err := nats.Connect(r.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer nc.Close()
	waiting := map[int]bool{}
	for p := range partitions {
		waiting[p] = true
	}
	for i := 0; len(waiting) > 0; i++ {
		name := "first" + strconv.Itoa(i)
		p := router.PartitionOf(routedPrefix+name, partitions)
		if !waiting[p] {
			continue
		}
		tryCtx, cancel := context.WithTimeout(ctx, time.Second)
		_, err := nc.RequestWithContext(tryCtx, "tripline.submit."+name, []byte(`{"lat":0,"lon":0}`))
		cancel()
		switch {
		case err == nil:
			delete(waiting, p)
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for partition %d: %w", p, err)
		}
	}
	return nil
}

// stopRouter stops the router in order.
func (r *rig) stopRouter(ctx context.Context) error {
	err := r.app.call(ctx, "stop", nil, nil)
	r.app.end()
	r.app = nil
	return err
}

// config is the router's configuration: the defaults but for what a benchmark
// needs otherwise.
func (r *rig) config() string {
	var b strings.Builder
	if r.embedded {
		fmt.Fprintf(&b, "nats: {store_dir: %q, listen: \"127.0.0.1:0\", max_store: %d}\n", filepath.Join(r.dir, "store"), int64(maxStore))
	} else {
		fmt.Fprintf(&b, "nats: {url: %q, max_store: %d}\n", r.url, int64(maxStore))
	}
	// What is judged may go at once: the disk is not what is measured.
	fmt.Fprintf(&b, "ingest: {durable: %t, partitions: %d, retention: 0s}\n", r.durable, partitions)
	// The fleet appears out of nowhere; nobody wants to hear of it.
	fmt.Fprintf(&b, "tracking: {initial: silent}\nfences: [{file: city.geojson}]\nadmin: {listen: \"127.0.0.1:0\"}\nconsumers:\n")
	for _, c := range r.consumers {
		fmt.Fprintf(&b, "  - name: %s\n    breaker: {p99: 2s}\n    match: {transitions: [enter, exit]", c.name)
		if c.devices != "" {
			fmt.Fprintf(&b, ", devices: [%q]", c.devices)
		}
		b.WriteString("}\n")
		switch c.kind {
		case kindNATS:
			fmt.Fprintf(&b, "    nats: {subject: %q}\n", outPrefix+c.name)
		case kindWebhook:
			fmt.Fprintf(&b, "    webhook: {url: %q, timeout: 8s}\n", r.hooks+"/ok/"+c.name)
		case kindHang:
			fmt.Fprintf(&b, "    webhook: {url: %q, timeout: 2s}\n", r.hooks+"/hang/"+c.name)
		}
	}
	return b.String()
}

// makeCountedStream makes the yardstick's stream, like the router's.
func (r *rig) makeCountedStream(ctx context.Context) error {
	return r.withJetStream(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, ingest.StreamName("tripline"))
		if err != nil {
			return fmt.Errorf("looking up the stream of locations: %w", err)
		}
		c := stream.CachedInfo().Config
		c.Name, c.Subjects, c.Description = countedStream, []string{countedPrefix + "*"}, ""
		if _, err := js.CreateStream(ctx, c); err != nil {
			return fmt.Errorf("making the yardstick's stream: %w", err)
		}
		return nil
	})
}

// trimmed waits until the router has removed from its stream all but so many
// locations. The server stops everything else while it removes some, so what
// full speed has left would be measured with half of it.
func (r *rig) trimmed(ctx context.Context, most uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietWithin, errors.New("what is judged was not removed"))
	defer cancel()
	return r.withJetStream(func(js jetstream.JetStream) error {
		for {
			stream, err := js.Stream(ctx, ingest.StreamName("tripline"))
			if err != nil {
				return fmt.Errorf("looking up the stream of locations: %w", err)
			}
			if stream.CachedInfo().State.Msgs <= most {
				return nil
			}
			if err := sleep(ctx, quietFor); err != nil {
				return err
			}
		}
	})
}

// purgeCounted empties the yardstick's stream, as the router does its own.
func (r *rig) purgeCounted(ctx context.Context) error {
	return r.withJetStream(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, countedStream)
		if err != nil {
			return fmt.Errorf("looking up the yardstick's stream: %w", err)
		}
		return stream.Purge(ctx)
	})
}

func (r *rig) withJetStream(do func(jetstream.JetStream) error) error {
	nc, err := nats.Connect(r.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	return do(js)
}

// scrape reads the router's metrics: the value of each series.
func (r *rig) scrape(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading the router's metrics: %w", err)
	}
	defer resp.Body.Close()
	series := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, "tripline_") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			series[name] = v
		}
	}
	return series, lines.Err()
}

// sum adds up the series of a metric.
func sum(series map[string]float64, metric string) float64 {
	total := 0.0
	for name, v := range series {
		if strings.HasPrefix(name, metric+"{") {
			total += v
		}
	}
	return total
}

const acceptedSeries = `tripline_fixes_total{result="accepted"}`

// readRouter is the router's usage, with the fixes that it has accepted.
func (r *rig) readRouter(ctx context.Context) (usage, error) {
	series, err := r.scrape(ctx)
	if err != nil {
		return usage{}, err
	}
	at := time.Now().UnixNano()
	var u usage
	if err := r.app.call(ctx, "read", nil, &u); err != nil {
		return u, err
	}
	u.At, u.Count = at, uint64(series[acceptedSeries])
	return u, nil
}

// readPlain is the yardstick's usage, with the messages that it has counted.
func (r *rig) readPlain(ctx context.Context) (usage, error) { return r.plain.usage(ctx) }

// taken is what each consumer has got since expect.
func (r *rig) taken(ctx context.Context) (got map[string]latency, err error) {
	return got, r.taker.call(ctx, "taken", nil, &got)
}

// settle waits until the router has judged, and its consumers have got, all
// that there is.
func (r *rig) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietWithin, errors.New("the router did not come to rest"))
	defer cancel()
	var last []float64
	for since := time.Now(); time.Since(since) < quietFor || last[0] > 0; {
		series, err := r.scrape(ctx)
		if err != nil {
			return err
		}
		now := []float64{
			r.waiting(series),
			sum(series, "tripline_fixes_total"), sum(series, "tripline_deliveries_total"),
		}
		if !slices.Equal(now, last) {
			last, since = now, time.Now()
		}
		if err := sleep(ctx, quietFor/10); err != nil {
			return err
		}
	}
	return nil
}

// waiting is how many triggers wait for consumers that answer.
func (r *rig) waiting(series map[string]float64) float64 {
	total := 0.0
	for _, c := range r.consumers {
		if c.kind == kindHang {
			continue
		}
		for _, metric := range []string{"tripline_lane_depth", "tripline_fallback_depth"} {
			total += series[fmt.Sprintf("%s{consumer=%q}", metric, c.name)]
		}
	}
	return total
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

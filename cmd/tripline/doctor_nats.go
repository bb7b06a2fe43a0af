package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/natsconn"
)

const (
	// skewWarn and skewFail are differences of the clocks. Receivers of signed
	// webhooks refuse what is five minutes off.
	skewWarn, skewFail = 2 * time.Second, 4 * time.Minute
	// syncWarn is the interval of disk syncs beyond which a power cut costs
	// more than most people expect.
	syncWarn = time.Second
	// How full a stream may be.
	fullWarn, fullFail = 0.80, 0.95
)

// lookAtNATS connects as the service would.
func (d *doctor) lookAtNATS(ctx context.Context) {
	const what = "nats"
	n := d.cfg.NATS
	to := app.NATSConfig(n, "doctor")
	if n.Embedded() {
		if n.Sync == config.SyncInterval {
			d.ok(what, "embedded; a power cut can cost the last 100 ms (nats.sync: always costs none)")
		}
		to.URL = "nats://" + n.Listen
		if !listens(ctx, n.Listen, d.timeout) {
			d.ok(what, "the embedded server is not running at %s; it starts with tripline run", n.Listen)
			return
		}
	}
	nc, err := natsconn.DialOnce(to)
	if err != nil {
		d.fail(what, "see nats: in the configuration", "%v", err)
		return
	}
	defer nc.Close()
	ask, cancel := d.within(ctx)
	defer cancel()
	if err := natsconn.Check(ask, nc); err != nil {
		d.fail(what, "", "%v", err)
		return
	}
	d.ok(what, "version %s at %s, max_payload %s", nc.ConnectedServerVersion(), nc.ConnectedUrlRedacted(), config.Size(nc.MaxPayload()))
	if !n.Embedded() {
		d.lookAtSync(ctx, nc)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		d.fail(what, "", "%v", err)
		return
	}
	d.lookAtStore(ctx, js)
	d.lookAtStreams(ctx, nc, js)
	d.lookAtTargets(ctx, js)
}

func listens(ctx context.Context, address string, timeout time.Duration) bool {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// lookAtSync asks how often the server forces its writes to the disk. Only
// the system account may know.
func (d *doctor) lookAtSync(ctx context.Context, nc *nats.Conn) {
	const what = "nats sync"
	const do = "in the server's configuration: jetstream { sync_interval: 100ms }, or sync: always"
	ask, cancel := context.WithTimeout(ctx, min(d.timeout, time.Second))
	defer cancel()
	var said struct {
		Data struct {
			Config struct {
				SyncInterval time.Duration `json:"sync_interval"`
				SyncAlways   bool          `json:"sync_always"`
			} `json:"config"`
		} `json:"data"`
	}
	msg, err := nc.RequestWithContext(ask, "$SYS.REQ.SERVER.PING.JSZ", []byte(`{"config":true}`))
	if err == nil {
		err = json.Unmarshal(msg.Data, &said)
	}
	c := said.Data.Config
	switch {
	case err != nil:
		d.warn(what, do, "this account may not see the server's sync_interval; its default of 2 min is what a power cut or a crash of the system can cost")
	case c.SyncAlways:
		d.ok(what, "every write is synced")
	case c.SyncInterval > syncWarn || c.SyncInterval == 0:
		d.warn(what, do, "the server syncs every %v: a power cut or a crash of the system can cost as much", c.SyncInterval)
	default:
		d.ok(what, "synced every %v", c.SyncInterval)
	}
}

// streams is how many a service with this configuration has.
func (d *doctor) streams() int {
	n := 1 + len(d.cfg.Consumers) // the state
	if n > 1 {
		n++ // dead letters
	}
	if d.cfg.Ingest.Durable {
		n++ // locations
		if !d.cfg.NATS.Embedded() {
			n++ // leases
		}
	}
	if slices.ContainsFunc(d.cfg.Fences, func(f config.FenceSource) bool { return f.KV }) {
		n++
	}
	return n
}

// lookAtStore holds what the streams reserve against what there is.
func (d *doctor) lookAtStore(ctx context.Context, js jetstream.JetStream) {
	const what = "store"
	ask, cancel := d.within(ctx)
	defer cancel()
	info, err := js.AccountInfo(ask)
	if err != nil {
		d.fail(what, "", "asking JetStream for its limits: %v", err)
		return
	}
	if needed, limit := d.streams(), info.Limits.MaxStreams; limit > 0 && limit < needed {
		d.fail(what, "raise the account's limit (max_streams)", "the account may have %s, and %d are needed", plural(limit, "stream"), needed)
	}
	store := int64(d.cfg.NATS.MaxStore)
	limit := info.Limits.MaxStore
	switch {
	case store > 0 && limit > 0 && store > limit:
		d.fail(what, "lower nats.max_store, or raise the account's limit", "nats.max_store is %s, and the account may store %s", config.Size(store), config.Size(limit))
		return
	case store == 0 && limit > 0:
		store = limit
	case store == 0 && !d.cfg.NATS.Embedded():
		d.warn(what, "set nats.max_store to what the server has room for", "neither the account nor nats.max_store bounds the store: 8 GiB is assumed")
		return
	case store == 0:
		return // the embedded server knows, and refuses to start if it is too little
	}
	budget, err := d.cfg.Budget(config.Size(store))
	if err != nil {
		d.fail(what, "", "%v", err)
		return
	}
	d.ok(what, "%s of %s are reserved for streams", budget.Total(), config.Size(store))
}

// lookAtStreams looks at those of the namespace.
func (d *doctor) lookAtStreams(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) {
	ask, cancel := d.within(ctx)
	defer cancel()
	prefix := strings.ToUpper(d.cfg.NATS.Namespace) + "_"
	list, n := js.ListStreams(ask), 0
	var skew time.Duration
	known := false
	for info := range list.Info() {
		if !strings.HasPrefix(strings.TrimPrefix(info.Config.Name, "KV_"), prefix) {
			continue
		}
		n++
		d.lookAtStream(nc, info)
	}
	if err := list.Err(); err != nil {
		d.fail("streams", "", "listing the streams: %v", err)
		return
	}
	if n == 0 {
		d.ok("streams", "none yet; they are made by tripline run")
		return
	}
	d.ok("streams", "%d, all looked at", n)
	if skew, known = skewOf(ask, js, prefix); known {
		d.judgeSkew(skew)
	}
}

func (d *doctor) lookAtStream(nc *nats.Conn, info *jetstream.StreamInfo) {
	name, c := "stream", info.Config
	if c.Storage != jetstream.FileStorage {
		d.fail(name, "remove it with `nats stream rm "+c.Name+"`; tripline run makes it anew", "%s is kept in memory: a restart of the server loses it", c.Name)
	}
	if nc.ConnectedClusterName() != "" && c.Replicas < 2 {
		d.warn(name, "nats.replicas: 3", "%s has one replica on a cluster: the loss of one machine loses it", c.Name)
	}
	if c.MaxBytes <= 0 {
		return
	}
	ratio := float64(info.State.Bytes) / float64(c.MaxBytes)
	text := fmt.Sprintf("%s is %.0f %% full (%s of %s)", c.Name, 100*ratio, config.Size(info.State.Bytes), config.Size(c.MaxBytes))
	do := "raise its bound, or see what keeps it from draining: tripline consumers"
	switch {
	case ratio >= fullFail:
		d.fail(name, do, "%s", text)
	case ratio >= fullWarn:
		d.warn(name, do, "%s", text)
	}
}

// skewOf is how far ahead of ours the server's clock is.
func skewOf(ctx context.Context, js jetstream.JetStream, prefix string) (time.Duration, bool) {
	stream, err := js.Stream(ctx, prefix+"STATE")
	if err != nil {
		return 0, false
	}
	before := time.Now()
	info, err := stream.Info(ctx)
	if err != nil || info.TimeStamp.IsZero() {
		return 0, false
	}
	middle := before.Add(time.Since(before) / 2)
	return info.TimeStamp.Sub(middle), true
}

func (d *doctor) judgeSkew(skew time.Duration) {
	const what, do = "clock", "let both machines follow a time server (NTP)"
	text := fmt.Sprintf("the NATS server's clock differs from this machine's by %v", skew.Abs().Round(time.Millisecond))
	switch {
	case skew.Abs() >= skewFail:
		d.fail(what, do, "%s", text)
	case skew.Abs() >= skewWarn:
		d.warn(what, do, "%s", text)
	default:
		d.ok(what, "%s", text)
	}
}

// lookAtTargets looks for the streams that jetstream consumers deliver into.
func (d *doctor) lookAtTargets(ctx context.Context, js jetstream.JetStream) {
	for _, k := range d.cfg.Consumers {
		if k.JetStream == nil {
			continue
		}
		ask, cancel := d.within(ctx)
		names := js.StreamNames(ask, jetstream.WithStreamListSubject(placeholder.ReplaceAllString(k.JetStream.Subject, "*")))
		found := slices.Collect(chanSeq(names.Name()))
		err := names.Err()
		cancel()
		switch {
		case err != nil:
			d.fail("consumer", "", "%s: looking for its stream: %v", k.Name, err)
		case len(found) == 0:
			d.fail("consumer", "make one, with `nats stream add`", "%s: no stream takes %s", k.Name, k.JetStream.Subject)
		default:
			d.ok("consumer", "%s: %s goes into stream %s", k.Name, k.JetStream.Subject, strings.Join(found, ", "))
		}
	}
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/tripline/tripline/router"
)

// pullSettings bound what a reader asks its consumer for.
type pullSettings struct {
	window    int           // messages asked for and not yet taken, at most
	maxBytes  int           // per request, so that large payloads stay bounded too
	expires   time.Duration // how long the server holds a request
	heartbeat time.Duration // how often it shows that it does
	silence   time.Duration // without a sign for this long the reader is dead
}

func defaultPull(maxPayload int64) pullSettings {
	return pullSettings{
		window: 1024,
		// A message larger than a request allows would never come.
		maxBytes:  max(4<<20, int(maxPayload)+64<<10),
		expires:   30 * time.Second,
		heartbeat: 2 * time.Second,
		silence:   5 * time.Second,
	}
}

// slack is room for the status messages beside the messages asked for: one
// for each request that ends, and its heartbeats while nobody takes them.
const slack = 256

// Reasons for a reader to be rebuilt.
var (
	errSilent      = errors.New("the consumer fell silent")
	errReconnected = errors.New("the connection was renewed")
	errGap         = errors.New("messages were lost on the way from the server")
	// errRewound can't be mended here: what is stored from now on would get
	// positions that count as judged. See StreamConfig.After.
	errRewound = errors.New("the location stream was made anew, or has lost its end; start the router again")
)

// reader reads one partition with an ordered pull consumer: no acks, and a
// message that is missing in the row the consumer delivers is noticed at once.
//
// It speaks the pull protocol itself, and not through nats.go's own ordered
// consumer, because of what happens when things go wrong: that one waits for
// two heartbeats after a reconnect, and a second or more between two attempts,
// before it resumes, hides for how long it has been silent, and calls back
// under its lock. Beyond what the client allocates per message there is nothing.
//
// All fields belong to the goroutine that runs session.
type reader struct {
	d         *Durable
	partition int
	out       chan<- *router.Batch
	batches   batches
	filling   *router.Batch

	next  uint64 // the first sequence that was not read yet
	clock int64  // the highest stored time, unix ms

	// Of the present session.
	msgs      chan *nats.Msg
	pull      *nats.Msg // what asks for more
	delivered uint64    // the last sequence in the consumer's own row
	asked     int       // messages asked for and not yet taken
}

func newReader(d *Durable, partition int, from uint64, out chan<- *router.Batch) *reader {
	r := &reader{d: d, partition: partition, out: out, next: from, batches: newBatches()}
	r.filling = r.batches.get()
	return r
}

// session makes a consumer at the next sequence and reads until it breaks.
func (r *reader) session(ctx context.Context, changed <-chan nats.Status) error {
	for len(changed) > 0 { // what this session makes is of the newest connection
		<-changed
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.msgs = make(chan *nats.Msg, r.d.pull.window+slack)
	inbox := r.d.nc.NewInbox()
	sub, err := r.d.nc.ChanSubscribe(inbox, r.msgs)
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when it is gone anyway

	name, err := r.consumer(ctx)
	if err != nil {
		return err
	}
	// Nobody waits for the answer: the server removes it by itself later.
	defer func() { _ = r.d.nc.Publish(jetstream.DefaultAPIPrefix+"CONSUMER.DELETE."+r.d.stream+"."+name, nil) }()
	r.pull = &nats.Msg{Subject: jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + r.d.stream + "." + name, Reply: inbox}
	r.asked, r.delivered = 0, 0
	return r.loop(ctx, changed)
}

// begin holds the next sequence against what the stream still has.
func (r *reader) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := r.d.js.Stream(ctx, r.d.stream)
	if err != nil {
		return fmt.Errorf("looking up stream %s: %w", r.d.stream, err)
	}
	state := stream.CachedInfo().State
	if r.next > state.LastSeq+1 {
		return fmt.Errorf("%w: it ends at %d, and partition %d was read up to %d", errRewound, state.LastSeq, r.partition, r.next-1)
	}
	first := state.FirstSeq
	if r.next > 0 && first > r.next {
		r.d.hooks.lost(r.partition, first-r.next)
	}
	r.next = max(r.next, first, 1)
	return nil
}

// requestTimeout bounds one request to JetStream.
const requestTimeout = 3 * time.Second

func (r *reader) consumer(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name = fmt.Sprintf("read-%d-%s", r.partition, nuid.Next())
	_, err = r.d.js.CreateConsumer(ctx, r.d.stream, jetstream.ConsumerConfig{
		Name:          name,
		Description:   "reads one partition for the router; made anew whenever needed",
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   r.next,
		AckPolicy:     jetstream.AckNonePolicy,
		// Exactly one: several collapse to a hundredth of the speed.
		FilterSubject:     "loc." + strconv.Itoa(r.partition) + ".>",
		InactiveThreshold: 2 * r.d.pull.expires,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return "", fmt.Errorf("making a consumer of partition %d: %w", r.partition, err)
	}
	return name, nil
}

// loop takes messages into the batch that is being filled, and hands it over
// as soon as somebody takes it. While a full batch waits, nothing more is taken.
func (r *reader) loop(ctx context.Context, changed <-chan nats.Status) error {
	watch := time.NewTicker(r.d.pull.silence / 2)
	defer watch.Stop()
	quiet := 0 // ticks of watch since the last sign of life
	for {
		if err := r.ask(); err != nil {
			return err
		}
		in, out := r.msgs, r.out
		if full(r.filling) {
			in = nil
		}
		if len(r.filling.Messages) == 0 {
			out = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return errReconnected
		case out <- r.filling:
			r.filling = r.batches.get()
		case msg := <-in:
			quiet = 0
			if err := r.take(msg); err != nil {
				return err
			}
		case <-watch.C:
			if in == nil {
				quiet = 0 // it is us who don't listen
			}
			if quiet++; quiet > 2 {
				return errSilent
			}
		}
	}
}

// take handles a message and those that wait behind it.
func (r *reader) take(msg *nats.Msg) error {
	for {
		if err := r.handle(msg); err != nil {
			return err
		}
		if full(r.filling) {
			break
		}
		select {
		case msg = <-r.msgs:
			continue
		default:
		}
		break
	}
	r.filling.Read = time.Now()
	return nil
}

// ask keeps the window open: at least half of it is always asked for.
func (r *reader) ask() error {
	room := r.d.pull.window - r.asked
	if room < r.d.pull.window/2 {
		return nil
	}
	p := &r.d.pull
	r.pull.Data = fmt.Appendf(r.pull.Data[:0], `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`,
		room, p.maxBytes, p.expires, p.heartbeat)
	if err := r.d.nc.PublishMsg(r.pull); err != nil {
		return fmt.Errorf("asking for messages: %w", err)
	}
	r.asked += room
	return nil
}

func (r *reader) handle(msg *nats.Msg) error {
	if len(msg.Data) == 0 && msg.Header != nil {
		if status := msg.Header.Get("Status"); status != "" {
			return r.status(status, msg.Header)
		}
	}
	d, ok := parseDelivery(msg.Reply)
	if !ok {
		return fmt.Errorf("message without a position: reply subject %q", msg.Reply)
	}
	if d.consumer != r.delivered+1 {
		return errGap
	}
	r.delivered++
	r.asked--
	if d.stream < r.next {
		return nil
	}
	r.next = d.stream + 1
	r.clock = max(r.clock, d.stored)
	m := next(r.filling)
	m.Seq, m.Stored = d.stream, r.clock
	if reply := msg.Header[replyHeader]; len(reply) > 0 && r.d.answerable(reply[0]) {
		m.Reply = reply[0]
	}
	r.d.fill(m, original(msg.Subject), msg.Data, msg.Header)
	return nil
}

// status handles what the server says beside messages. A request that ended
// tells how much of it was left; anything else means that the consumer is of
// no use any more.
func (r *reader) status(status string, h nats.Header) error {
	switch status {
	case "100": // idle
		if last, err := strconv.ParseUint(h.Get("Nats-Last-Consumer"), 10, 64); err == nil && last > r.delivered {
			return errGap
		}
		return nil
	case "408", "409":
		left, err := strconv.Atoi(h.Get("Nats-Pending-Messages"))
		if err != nil {
			break
		}
		r.asked = max(0, r.asked-left)
		return nil
	}
	return fmt.Errorf("the consumer ended: %s %s", status, strings.ToLower(h.Get("Description")))
}

// delivery is where a message stands.
type delivery struct {
	stream, consumer uint64 // sequence in the stream, and in the consumer's row
	stored           int64  // unix ms
}

// parseDelivery reads the reply subject of a delivered message:
// $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<times>.<stream
// sequence>.<consumer sequence>.<stored, unix ns>.<pending>[.<token>].
func parseDelivery(reply string) (d delivery, ok bool) {
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	if !ok {
		return d, false
	}
	skip := 3
	if strings.Count(rest, ".") >= 8 {
		skip = 5
	}
	for range skip {
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			return d, false
		}
	}
	var numbers [3]uint64
	for i := range numbers {
		var token string
		if token, rest, ok = strings.Cut(rest, "."); !ok {
			return d, false
		}
		n, err := strconv.ParseUint(token, 10, 64)
		if err != nil {
			return d, false
		}
		numbers[i] = n
	}
	return delivery{stream: numbers[0], consumer: numbers[1], stored: int64(numbers[2] / 1e6)}, true
}

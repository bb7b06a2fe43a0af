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

// puller speaks the pull protocol with one ordered consumer: no acks, and a
// message that is missing in the row the consumer delivers is noticed at once.
//
// nats.go's own ordered consumer is not used because of what happens when
// things go wrong: that one waits for two heartbeats after a reconnect, and a
// second or more between two attempts, before it resumes, hides for how long it
// has been silent, and calls back under its lock. Beyond what the client
// allocates per message there is nothing here.
type puller struct {
	d         *Durable
	msgs      chan *nats.Msg
	request   *nats.Msg // what asks for more
	delivered uint64    // the last sequence in the consumer's own row
	asked     int       // messages asked for and not yet taken
}

// open makes a consumer that begins at a sequence; stop removes it. An empty
// filter takes everything; otherwise there is exactly one, because several
// collapse to a hundredth of the speed.
func open(ctx context.Context, d *Durable, label, filter string, from uint64) (p *puller, stop func(), err error) {
	p = &puller{d: d, msgs: make(chan *nats.Msg, d.pull.window+slack)}
	inbox := d.nc.NewInbox()
	sub, err := d.nc.ChanSubscribe(inbox, p.msgs)
	if err != nil {
		return nil, nil, fmt.Errorf("subscribing: %w", err)
	}
	unsubscribe := func() { _ = sub.Unsubscribe() } // fails only when it is gone anyway
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := "read-" + label + "-" + nuid.Next()
	_, err = d.js.CreateConsumer(ctx, d.stream, jetstream.ConsumerConfig{
		Name:              name,
		Description:       "reads locations for the router; made anew whenever needed",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       from,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     filter,
		InactiveThreshold: 2 * d.pull.expires,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		unsubscribe()
		return nil, nil, fmt.Errorf("making a consumer of %s: %w", d.stream, err)
	}
	const api = jetstream.DefaultAPIPrefix + "CONSUMER."
	p.request = &nats.Msg{Subject: api + "MSG.NEXT." + d.stream + "." + name, Reply: inbox}
	return p, func() {
		unsubscribe()
		// Nobody waits for the answer: the server removes it by itself later.
		_ = d.nc.Publish(api+"DELETE."+d.stream+"."+name, nil)
	}, nil
}

// requestTimeout bounds one request to JetStream.
const requestTimeout = 3 * time.Second

// ask keeps the window open: at least half of it is always asked for.
func (p *puller) ask() error {
	s := &p.d.pull
	room := s.window - p.asked
	if room < s.window/2 {
		return nil
	}
	p.request.Data = fmt.Appendf(p.request.Data[:0], `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`,
		room, s.maxBytes, s.expires, s.heartbeat)
	if err := p.d.nc.PublishMsg(p.request); err != nil {
		return fmt.Errorf("asking for messages: %w", err)
	}
	p.asked += room
	return nil
}

// accept tells where a message stands; false for one that only says how the
// consumer is. The error means that the consumer is of no more use.
func (p *puller) accept(msg *nats.Msg) (d delivery, ok bool, err error) {
	if len(msg.Data) == 0 && msg.Header != nil {
		if status := msg.Header.Get("Status"); status != "" {
			return d, false, p.status(status, msg.Header)
		}
	}
	d, ok = parseDelivery(msg.Reply)
	if !ok {
		return d, false, fmt.Errorf("message without a position: reply subject %q", msg.Reply)
	}
	if d.consumer != p.delivered+1 {
		return d, false, errGap
	}
	p.delivered++
	p.asked--
	return d, true, nil
}

// status handles what the server says beside messages. A request that ended
// tells how much of it was left.
func (p *puller) status(status string, h nats.Header) error {
	switch status {
	case "100": // idle
		if last, err := strconv.ParseUint(h.Get("Nats-Last-Consumer"), 10, 64); err == nil && last > p.delivered {
			return errGap
		}
		return nil
	case "408", "409":
		left, err := strconv.Atoi(h.Get("Nats-Pending-Messages"))
		if err != nil {
			break
		}
		p.asked = max(0, p.asked-left)
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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// plainRole is the yardstick: a subscriber written with nats.go that does
// nothing but count, and answer the few markers.
type plainRole struct {
	nc    *nats.Conn
	count atomic.Uint64
	stop  func()

	mu        sync.Mutex // guards what follows
	schedule  schedule   // no latencies while it is zero
	latencies []int64    // ns, of every sampleEvery-th message
}

// sampleEvery thins out what the yardstick measures, so that it stays plain.
const sampleEvery = 64

// plainListen says what to count: a subject, or else a stream.
type plainListen struct {
	Subject string `json:"subject"`
	Stream  string `json:"stream"`
}

func (p *plainRole) operations() map[string]operation {
	return map[string]operation{
		"start":  op(p.start),
		"listen": op(p.listen),
		"leave":  op(func(context.Context, struct{}) (any, error) { p.stop(); return nil, nil }),
		"expect": op(p.expect),
		"latency": op(func(context.Context, struct{}) (any, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			l := summarize(len(p.latencies), p.latencies)
			p.schedule = schedule{}
			return l, nil
		}),
		"read": op(func(context.Context, struct{}) (any, error) { return readUsage(p.count.Load()), nil }),
	}
}

func (p *plainRole) close() {
	if p.nc != nil {
		p.nc.Close()
	}
}

func (p *plainRole) start(_ context.Context, url string) (_ any, err error) {
	if p.nc, err = nats.Connect(url, nats.Name("load/plain")); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return nil, nil
}

func (p *plainRole) listen(ctx context.Context, arg plainListen) (any, error) {
	if arg.Stream != "" {
		return nil, p.listenStream(ctx, arg.Stream)
	}
	sub, err := p.nc.Subscribe(arg.Subject, func(m *nats.Msg) {
		if p.count.Add(1)%sampleEvery == 0 {
			p.sample(m.Subject, m.Data)
		}
		if m.Reply != "" {
			_ = m.Respond(nil) // a lost answer shows as a stall of the publisher
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("lifting the limits of the subscription: %w", err)
	}
	p.stop = func() { _ = sub.Unsubscribe() }
	return nil, p.nc.Flush()
}

func (p *plainRole) listenStream(ctx context.Context, stream string) error {
	js, err := jetstream.New(p.nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		return fmt.Errorf("making an ordered consumer: %w", err)
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		if p.count.Add(1)%sampleEvery == 0 {
			p.sample(m.Subject(), m.Data())
		}
		if h := m.Headers(); h != nil {
			if to := h[markHeader]; len(to) > 0 {
				_ = p.nc.Publish(to[0], nil)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	p.stop = reading.Stop
	return nil
}

func (p *plainRole) expect(_ context.Context, s schedule) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule, p.latencies = s, nil
	return nil, nil
}

// sample notes how long after it was due a fix arrived.
func (p *plainRole) sample(subject string, payload []byte) {
	now := time.Now().UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.schedule.Interval == 0 {
		return
	}
	var fix struct {
		TS int64 `json:"ts"`
	}
	if json.Unmarshal(payload, &fix) != nil {
		return
	}
	device := subject[strings.LastIndexByte(subject, '.')+1:]
	if due, err := p.schedule.due(device, fix.TS); err == nil {
		p.latencies = append(p.latencies, now-due)
	}
}

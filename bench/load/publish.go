package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// Without a rate, as many fixes may be on their way as fit between the
	// markers: every markEvery-th fix is one that is answered once it was
	// judged (or counted, by a plain subscriber).
	markEvery  = 1024
	maxMarkers = 56
	// stalledAfter is how long no marker may be answered.
	stalledAfter = 60 * time.Second
	// leadTime is from a job's answer to its first fix, so that those who
	// measure are told of the schedule in time.
	leadTime = 50 * time.Millisecond
	// napMin keeps the paced publisher from spinning.
	napMin = 200 * time.Microsecond
	// markHeader carries the reply subject of a marker through a stream.
	markHeader = "Load-Reply"
)

// How a marker asks for its answer.
const (
	markReply  = "reply"  // with a reply subject
	markSubmit = "submit" // on Tripline's submit subject
	markInside = "header" // with a header, which a stream keeps
)

// publishStart connects a publisher.
type publishStart struct {
	URL  string `json:"url"`
	City city   `json:"city"`
}

// job is what a publisher does until it is stopped.
type job struct {
	Prefix string  `json:"prefix"` // of the subjects
	Mark   string  `json:"mark"`
	Rate   float64 `json:"rate"`  // fixes per second; 0: as fast as they are judged
	Count  int     `json:"count"` // ends after so many; 0: never
	Still  bool    `json:"still"` // the devices stand, so nothing happens
}

// schedule says when which fix was due: number i (from 0) at
// Start + i*Interval, from device i mod Devices.
type schedule struct {
	Start    int64   `json:"start"`    // unix ns
	Interval float64 `json:"interval"` // ns
	Devices  int     `json:"devices"`
}

// sent is what became of a job.
type sent struct {
	Fixes   int     `json:"fixes"`
	Seconds float64 `json:"seconds"`
	// Behind is how far the publisher was behind its schedule at worst, in
	// milliseconds: what it adds to every latency measured.
	Behind float64 `json:"behind_ms"`
}

// publishRole publishes the fleet's fixes.
type publishRole struct {
	nc       *nats.Conn
	city     city
	fleets   map[string]*fleet // by prefix: each audience has its own
	names    []string
	inbox    string
	lastTS   int64
	answered chan struct{}

	stopped atomic.Bool
	done    chan struct{} // closed when the job has ended
	result  sent
	err     error
}

func (p *publishRole) operations() map[string]operation {
	return map[string]operation{
		"start": op(p.start),
		"go":    op(p.begin),
		"stop":  op(func(context.Context, struct{}) (any, error) { p.stopped.Store(true); return p.finish() }),
		"wait":  op(func(context.Context, struct{}) (any, error) { return p.finish() }),
		"read":  op(func(context.Context, struct{}) (any, error) { return readUsage(0), nil }),
	}
}

func (p *publishRole) close() {
	if p.nc != nil {
		p.nc.Close()
	}
}

func (p *publishRole) start(_ context.Context, arg publishStart) (_ any, err error) {
	if p.nc, err = nats.Connect(arg.URL, nats.Name("load/publish")); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	p.city, p.fleets = arg.City, map[string]*fleet{}
	p.names = make([]string, arg.City.Devices)
	for i := range p.names {
		p.names[i] = deviceName(i)
	}
	p.answered = make(chan struct{}, maxMarkers)
	p.inbox = nats.NewInbox()
	_, err = p.nc.Subscribe(p.inbox, func(*nats.Msg) {
		select {
		case p.answered <- struct{}{}:
		default: // of an earlier job
		}
	})
	return nil, err
}

func (p *publishRole) begin(_ context.Context, j job) (any, error) {
	subjects := make([]string, len(p.names))
	for i, name := range p.names {
		subjects[i] = j.Prefix + name
	}
	if p.fleets[j.Prefix] == nil {
		p.fleets[j.Prefix] = p.city.fleet()
	}
	p.stopped.Store(false)
	p.result, p.err = sent{}, nil
	p.done = make(chan struct{})
	for len(p.answered) > 0 {
		<-p.answered
	}
	s := schedule{Start: time.Now().Add(leadTime).UnixNano(), Devices: len(p.names)}
	if j.Rate > 0 {
		s.Interval = 1e9 / j.Rate
	}
	go func() {
		defer close(p.done)
		begun := time.Now()
		if j.Rate > 0 {
			p.err = p.paced(j, s, subjects)
		} else {
			p.err = p.flood(j, subjects)
		}
		p.result.Seconds = time.Since(begun).Seconds()
	}()
	return s, nil
}

// finish waits for the job's end.
func (p *publishRole) finish() (any, error) {
	<-p.done
	if p.err == nil {
		p.err = p.nc.Flush()
	}
	return p.result, p.err
}

// flood publishes as fast as the markers come back.
func (p *publishRole) flood(j job, subjects []string) error {
	var payload []byte
	out, now := 0, time.Now().UnixMilli()
	floor := max(p.lastTS+1, now)
	for i := 0; !p.stopped.Load() && (j.Count == 0 || i < j.Count); i++ {
		d := i % len(subjects)
		if d == 0 {
			floor = max(p.lastTS+1, floor) // no device has a ts twice
		}
		if i%64 == 0 {
			now = time.Now().UnixMilli()
		}
		p.lastTS = max(now, floor)
		payload = p.payload(payload[:0], j, d, p.lastTS)
		var err error
		if i%markEvery == markEvery-1 || i == j.Count-1 {
			if out == maxMarkers {
				if err := p.await(1); err != nil {
					return err
				}
				out--
			}
			out++
			err = p.publishMarker(j, subjects[d], p.names[d], payload)
		} else {
			err = p.nc.Publish(subjects[d], payload)
		}
		if err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		p.result.Fixes++
	}
	return p.await(out)
}

func (p *publishRole) payload(dst []byte, j job, device int, ts int64) []byte {
	f := p.fleets[j.Prefix]
	if !j.Still {
		f.move(device)
	}
	return f.appendFix(dst, device, ts)
}

func (p *publishRole) publishMarker(j job, subject, device string, payload []byte) error {
	switch j.Mark {
	case markSubmit:
		return p.nc.PublishRequest("tripline.submit."+device, p.inbox, payload)
	case markInside:
		return p.nc.PublishMsg(&nats.Msg{Subject: subject, Data: payload, Header: nats.Header{markHeader: {p.inbox}}})
	}
	return p.nc.PublishRequest(subject, p.inbox, payload)
}

// await takes the answers of n markers.
func (p *publishRole) await(n int) error {
	timeout := time.NewTimer(stalledAfter)
	defer timeout.Stop()
	for range n {
		select {
		case <-p.answered:
			timeout.Reset(stalledAfter)
		case <-timeout.C:
			return errors.New("no marker was answered: fixes were lost on their way, or nobody judges them")
		}
	}
	return nil
}

// paced publishes each fix when it is due, whatever the others do. Its ts is
// that time, so the consumer knows when it was due.
func (p *publishRole) paced(j job, s schedule, subjects []string) error {
	var payload []byte
	i := 0
	for !p.stopped.Load() && (j.Count == 0 || i < j.Count) {
		now := time.Now().UnixNano()
		due := int(float64(now-s.Start) / s.Interval)
		if due > i {
			p.result.Behind = max(p.result.Behind, float64(due-i)*s.Interval/1e6)
		}
		for ; i <= due && (j.Count == 0 || i < j.Count); i++ {
			d := i % len(subjects)
			at := (s.Start + int64(float64(i)*s.Interval)) / 1e6
			payload = p.payload(payload[:0], j, d, at)
			p.lastTS = max(p.lastTS, at)
			if err := p.nc.Publish(subjects[d], payload); err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
			p.result.Fixes++
		}
		next := time.Duration(s.Start + int64(float64(i)*s.Interval) - time.Now().UnixNano())
		time.Sleep(max(napMin, next))
	}
	return nil
}

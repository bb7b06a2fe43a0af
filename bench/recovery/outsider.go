package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/router"
)

// outsider delivers to a consumer with a policy that the product can't be
// configured to have: the benchmark's own outlet, fed by the router over NATS,
// in real time and with real calls.
type outsider struct {
	*stage
	client *http.Client
	url    string
	queues [slotCount][][]byte // what each slot has still to deliver, parked or not
	calls  sync.WaitGroup
}

func newOutsider(sc *scenario, d discipline, url string, began time.Time, seed uint64) *outsider {
	o := &outsider{url: url, client: &http.Client{
		Timeout:   clientTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: sc.workers, DisableCompression: true},
	}}
	s := &sim{scenario: sc, discipline: d, pollAt: never, tickAt: never}
	s.tally = tally{heals: sc.outage, closedAt: -1, drainedAt: -1}
	s.policy = d.build(s, stream(seed, 4))
	s.send = o.call
	o.stage = newStage(s, began, func() {
		s.dispatch()
		s.arm()
	})
	return o
}

// take is a trigger from the router.
func (o *outsider) take(ctx context.Context, m *nats.Msg) {
	device := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	slot := int32(router.PartitionOf(device, slotCount))
	o.do(ctx, func() {
		o.queues[slot] = append(o.queues[slot], m.Data)
		o.s.arrive(slot)
	})
}

// call delivers the oldest trigger of a call's slot.
func (o *outsider) call(id int32) {
	c := &o.s.calls[id]
	c.working = false // nothing of the model works on it
	slot := c.slot
	body := o.queues[slot][0]
	o.calls.Go(func() {
		ok := o.post(body)
		o.asked <- func() {
			if ok {
				o.queues[slot] = o.queues[slot][1:]
			}
			o.s.ended(id, ok)
		}
	})
}

func (o *outsider) post(body []byte) bool {
	resp, err := o.client.Post(o.url, "application/cloudevents+json", bytes.NewReader(body))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusNoContent
}

// close waits for the calls in flight. The stage has ended.
func (o *outsider) close() {
	stop := make(chan struct{})
	go func() { o.calls.Wait(); close(stop) }()
	for {
		select {
		case <-o.asked:
		case <-stop:
			o.client.CloseIdleConnections()
			return
		}
	}
}

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// delivery is a trigger as a consumer got it.
type delivery struct {
	ID, Subject, Sequence string
	late                  bool // the caller had hung up when it was taken
	redriven              bool // an operator sent it again: it comes late on purpose
}

// offence is something that must not happen.
type offence struct {
	consumer, id, device, text string
	at                         time.Duration
}

func (o offence) String() string {
	return fmt.Sprintf("%s at %.1f s: %s of %s: %s", o.consumer, o.at.Seconds(), o.id, o.device, o.text)
}

// taken is what a consumer knows of a trigger that it took.
type taken struct {
	device, sequence string
	times            int
	first            time.Duration
}

// newest is the highest sequence of a device.
type newest struct {
	sequence string
	at       time.Duration
}

// consumer is a webhook that keeps a record of what it takes.
type consumer struct {
	downstream
	temper *temper
	url    string
	server *http.Server
	since  func() time.Duration // the run's clock
	again  *atomic.Uint64       // positions up to this may have been judged twice

	mu          sync.Mutex // guards what follows
	taken       map[string]*taken
	highest     map[string]newest // by device
	duplicates  int
	reordered   []offence
	resequenced []offence // repeats that a consumer can't tell by their sequence
}

func serveConsumer(d downstream, seed, number uint64, since func() time.Duration, again *atomic.Uint64) (*consumer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the consumer %s: %w", d.name, err)
	}
	c := &consumer{
		downstream: d,
		temper:     newTemper(seed, number),
		url:        "http://" + listener.Addr().String() + "/triggers",
		since:      since,
		again:      again,
		taken:      map[string]*taken{},
		highest:    map[string]newest{},
	}
	c.concurrency = cmp.Or(d.concurrency, 16)
	c.server = &http.Server{Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: 5 * time.Second}
	go c.server.Serve(listener) // ends with close
	return c, nil
}

func (c *consumer) close() { c.server.Close() }

func (c *consumer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the router was killed while it sent
	}
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil || d.ID == "" || d.ID != r.Header.Get("Webhook-Id") {
		c.garbled(d, body)
		return
	}
	how := c.temper.treat()
	if how.delay > 0 {
		// Whoever called may be gone when it is over: then it is taken late,
		// as a real consumer would.
		time.Sleep(how.delay)
	}
	d.redriven = r.Header.Get("Tripline-Redriven") != ""
	d.late = r.Context().Err() != nil
	if how.takes {
		c.take(d)
	}
	how.answer(w, r)
}

// garbled notes a delivery that can't be read.
func (c *consumer) garbled(d delivery, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reordered = append(c.reordered, offence{c.name, d.ID, d.Subject, fmt.Sprintf("unreadable: %q", body), c.since()})
}

// take enters a delivery into the record.
func (c *consumer) take(d delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.since()
	if t := c.taken[d.ID]; t != nil {
		t.times++
		c.duplicates++
		if d.Sequence != t.sequence {
			c.resequenced = append(c.resequenced, offence{c.name, d.ID, d.Subject,
				fmt.Sprintf("a repeat with sequence %s, it had %s when it came at %.1f s", d.Sequence, t.sequence, t.first.Seconds()), now})
		}
		return
	}
	c.taken[d.ID] = &taken{d.Subject, d.Sequence, 1, now}
	if d.redriven {
		return
	}
	if last := c.highest[d.Subject]; d.Sequence <= last.sequence {
		// What was settled and not yet saved at a kill is judged again after
		// it. Where it was settled as a dead letter that repeats a trigger
		// that never came, behind those that did come. Its sequence says so. So
		// it does of a call that the router has given up on meanwhile, for good.
		if !c.givesUp || !d.late && position(d.Sequence) > c.again.Load() {
			c.reordered = append(c.reordered, offence{c.name, d.ID, d.Subject,
				fmt.Sprintf("sequence %s after %s, which came at %.1f s", d.Sequence, last.sequence, last.at.Seconds()), now})
		}
		return
	}
	c.highest[d.Subject] = newest{d.Sequence, now}
}

// position is that of the message that made the trigger happen.
func position(sequence string) uint64 {
	text, _, _ := strings.Cut(sequence, ".")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return math.MaxUint64
	}
	return n
}

// missing returns the expected triggers that it has not taken.
func (c *consumer) missing(expected map[string]*expectation) []*expectation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*expectation
	for id, x := range expected {
		if c.taken[id] == nil {
			out = append(out, x)
		}
	}
	return out
}

// unexpected returns what it took and nobody expected.
func (c *consumer) unexpected(expected map[string]*expectation) []offence {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []offence
	for id, t := range c.taken {
		if expected[id] == nil {
			out = append(out, offence{c.name, id, t.device, "nobody expected it; sequence " + t.sequence, t.first})
		}
	}
	return out
}

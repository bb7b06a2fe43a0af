package jetqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
)

// awayPoll is how often a publisher with something to send looks whether its
// connection is back.
const awayPoll = 50 * time.Millisecond

// publisher stores messages asynchronously: a bounded number is on its way to
// the server, the rest waits in memory, and each one's done is called once,
// with the server's answer or after a timeout. It needs one subscription and
// one goroutine however much is on its way.
type publisher struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	inbox   string // replies come to inbox + token
	limit   int
	timeout time.Duration

	mu      sync.Mutex // guards the fields below; not held over a call out
	waiting []*publish // not sent yet, oldest first
	flight  map[uint64]*publish
	sent    []*publish // as flight, oldest first; answered ones are dropped lazily
	refused []*publish // failed before they were sent
	token   uint64
	closed  bool

	wake chan struct{} // to run: something changed
}

// publish is one message and who wants to know of it.
type publish struct {
	msg      *nats.Msg
	done     func(seq uint64, err error)
	token    uint64 // 0 until it is sent
	deadline time.Time
	answered bool
	err      error // of a refused one
}

func newPublisher(nc *nats.Conn, limit int, timeout time.Duration) (*publisher, error) {
	p := &publisher{
		nc:      nc,
		inbox:   nc.NewInbox() + ".",
		limit:   limit,
		timeout: timeout,
		flight:  make(map[uint64]*publish),
		wake:    make(chan struct{}, 1),
	}
	sub, err := nc.Subscribe(p.inbox+"*", p.answer)
	if err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	p.sub = sub
	return p, nil
}

// publish takes a message. It doesn't wait, and done is not called before it
// returns.
func (p *publisher) publish(msg *nats.Msg, done func(seq uint64, err error)) {
	m := &publish{msg: msg, done: done, deadline: time.Now().Add(p.timeout)}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		go done(0, fallback.ErrClosed)
		return
	}
	p.waiting = append(p.waiting, m)
	p.mu.Unlock()
	p.send()
	if !p.nc.IsConnected() {
		p.nudge() // run looks when the connection is back
	}
}

// refuse answers done with err, later.
func (p *publisher) refuse(done func(seq uint64, err error), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go done(0, fallback.ErrClosed)
		return
	}
	p.refused = append(p.refused, &publish{done: done, err: err})
	p.nudge()
}

// nudge wakes run.
func (p *publisher) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// send sends what waits, as far as the limit allows.
func (p *publisher) send() {
	for {
		m := p.next()
		if m == nil {
			return
		}
		if err := p.nc.PublishMsg(m.msg); err != nil {
			p.mu.Lock()
			if p.flight[m.token] == m {
				delete(p.flight, m.token)
				m.answered, m.err = true, err
				p.refused = append(p.refused, m)
				p.nudge()
			}
			p.mu.Unlock()
		}
	}
}

// next moves one message from waiting to flight, or returns nil.
func (p *publisher) next() *publish {
	p.mu.Lock()
	defer p.mu.Unlock()
	// While the connection is away nothing is handed to it: its buffer would
	// send long after we gave up.
	if len(p.waiting) == 0 || len(p.flight) >= p.limit || p.closed || !p.nc.IsConnected() {
		return nil
	}
	m := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	p.token++
	m.token = p.token
	m.deadline = time.Now().Add(p.timeout)
	m.msg.Reply = p.inbox + strconv.FormatUint(m.token, 36)
	p.flight[m.token] = m
	if len(p.sent) == 0 {
		p.nudge() // run has no deadline to sleep towards
	}
	p.sent = append(p.sent, m)
	return m
}

// take removes the message of a reply, nil if it has been answered before.
func (p *publisher) take(token uint64) *publish {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.flight[token]
	if m == nil {
		return nil
	}
	delete(p.flight, token)
	m.answered = true
	for len(p.sent) > 0 && p.sent[0].answered {
		p.sent[0] = nil
		p.sent = p.sent[1:]
	}
	return m
}

// answer receives the server's acknowledgements.
func (p *publisher) answer(reply *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(reply.Subject, p.inbox), 36, 64)
	if err != nil {
		return
	}
	if m := p.take(token); m != nil {
		m.done(parseAck(reply))
		p.send()
	}
}

// run answers what the server doesn't, until ctx ends; close must have been
// called by then.
func (p *publisher) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		late, sleep := p.overdue(time.Now())
		for _, m := range late {
			m.done(0, m.err)
		}
		p.send()
		timer.Reset(sleep)
	}
}

var (
	errNoAck = errors.New("no acknowledgement in time, it may have been stored")
	errAway  = errors.New("the connection to NATS is down")
	errSlow  = errors.New("earlier ones have not been acknowledged in time")
)

// overdue takes out what is to be answered by run, and says how long it may
// sleep.
func (p *publisher) overdue(now time.Time) (late []*publish, sleep time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late, p.refused = p.refused, nil
	sleep = time.Hour
	for len(p.sent) > 0 {
		m := p.sent[0]
		if !m.answered {
			if sleep = m.deadline.Sub(now); sleep > 0 {
				break
			}
			delete(p.flight, m.token)
			m.answered, m.err = true, errNoAck
			late = append(late, m)
		}
		p.sent[0] = nil
		p.sent = p.sent[1:]
	}
	connected := p.nc.IsConnected()
	for len(p.waiting) > 0 {
		m := p.waiting[0]
		if m.deadline.After(now) {
			sleep = min(sleep, m.deadline.Sub(now))
			break
		}
		m.err = errSlow
		if !connected {
			m.err = errAway
		}
		late = append(late, m)
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
	}
	if len(p.waiting) > 0 && !connected {
		sleep = min(sleep, awayPoll)
	}
	if len(p.sent) == 0 && len(p.waiting) == 0 {
		sleep = time.Hour
	}
	return late, sleep
}

// close answers everything that has no answer yet with ErrClosed. Nothing is
// sent or answered after it.
func (p *publisher) close() {
	_ = p.sub.Unsubscribe()
	p.mu.Lock()
	p.closed = true
	left := append(p.refused, p.waiting...)
	for _, m := range p.sent {
		if !m.answered {
			m.answered = true
			left = append(left, m)
		}
	}
	p.refused, p.waiting, p.sent = nil, nil, nil
	clear(p.flight)
	p.mu.Unlock()
	for _, m := range left {
		m.done(0, fallback.ErrClosed)
	}
}

// ack is the server's answer to a publish.
type ack struct {
	Error     *apiError `json:"error"`
	Seq       uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
}

// parseAck reads an acknowledgement.
func parseAck(reply *nats.Msg) (uint64, error) {
	if len(reply.Data) == 0 && reply.Header.Get("Status") == "503" {
		return 0, nats.ErrNoResponders
	}
	var a ack
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return 0, fmt.Errorf("acknowledgement not understood: %w", err)
	}
	switch {
	case a.Error != nil:
		return 0, a.Error
	case a.Seq == 0:
		return 0, errors.New("acknowledgement without a sequence")
	case a.Duplicate:
		return a.Seq, fallback.ErrDuplicate
	}
	return a.Seq, nil
}

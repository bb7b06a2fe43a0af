package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// acknowledgement is what either side answers: JetStream its PubAck, and in
// core mode Tripline whether it took the location.
type acknowledgement struct {
	Stream    string `json:"stream"`
	Duplicate bool   `json:"duplicate"`
	OK        *bool  `json:"ok"`
	Reason    string `json:"reason"`
	// Error is an object from JetStream, and a text from Tripline.
	Error json.RawMessage `json:"error"`
}

// answered takes an acknowledgement in; it runs on the connection's goroutine.
func (p *publisher) answered(msg *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(msg.Subject, p.inbox), 10, 64)
	if err != nil {
		return
	}
	ack, err := readAck(msg)
	if err != nil {
		p.fail(number, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.flight[number]
	if !ok {
		f = p.takeFailed(number) // it came late, but it came
	}
	if f == nil {
		return
	}
	delete(p.flight, number)
	p.count(f, ack)
	p.signal()
}

// count books an acknowledged message.
func (p *publisher) count(f *flying, ack acknowledgement) {
	if ack.OK != nil && !*ack.OK {
		if ack.Reason == "duplicate" {
			p.counts.acked++
			p.counts.duplicates++
			return
		}
		p.counts.refused[ack.Reason]++
		return
	}
	p.counts.acked++
	switch newest, any := p.newest[f.subject]; {
	case ack.Duplicate:
		p.counts.duplicates++
	case any && newest > f.number:
		p.counts.overtaken++
	default:
		p.newest[f.subject] = f.number
	}
}

// takeFailed removes a message that waits to be sent again.
func (p *publisher) takeFailed(number uint64) *flying {
	for i, f := range p.failed {
		if f.number == number {
			p.failed = append(p.failed[:i], p.failed[i+1:]...)
			return f
		}
	}
	return nil
}

// readAck understands an answer; the error is one to try again after.
func readAck(msg *nats.Msg) (acknowledgement, error) {
	var ack acknowledgement
	if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
		return ack, nats.ErrNoResponders
	}
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		return ack, fmt.Errorf("an answer that is no acknowledgement: %.100q", msg.Data)
	}
	if ack.OK != nil {
		return ack, nil
	}
	// An error comes with the stream's name as well.
	var refused struct {
		Description string `json:"description"`
	}
	switch {
	case len(ack.Error) > 0 && json.Unmarshal(ack.Error, &refused) == nil && refused.Description != "":
		return ack, errors.New(refused.Description)
	case len(ack.Error) > 0 || ack.Stream == "":
		return ack, fmt.Errorf("an answer that is no acknowledgement: %.100q", msg.Data)
	}
	return ack, nil
}

// explain says what to do about a message that stays unacknowledged.
func explain(f *flying) error {
	switch {
	case errors.Is(f.err, nats.ErrNoResponders):
		return fmt.Errorf("nobody takes %s: start tripline run, and let --subject fit its ingest.subjects", f.subject)
	case errors.Is(f.err, errNoAck):
		return fmt.Errorf("no acknowledgement of %s: is the server's disk full, or the network cut?", f.subject)
	case errors.Is(f.err, errLost), errors.Is(f.err, nats.ErrReconnectBufExceeded):
		return errors.New("the connection to NATS is lost, and the server can't be reached again")
	case strings.Contains(f.err.Error(), "maximum"):
		return fmt.Errorf("the stream of locations is full (%w): raise ingest.max_bytes, or see why Tripline doesn't keep up", f.err)
	}
	return fmt.Errorf("%s: %w", f.subject, f.err)
}

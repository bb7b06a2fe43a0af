package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
)

// The kinds of sink that a run has.
const (
	webhook = "webhook"
	request = "request"
	stream  = "jetstream"
)

const (
	archiveStream  = "CHAOS_ARCHIVE"
	archiveSubject = "archive"
	// lookEvery is how often the archive is asked for what it has not shown yet.
	lookEvery = 50 * time.Millisecond
)

// sink is the consumer's sink in YAML.
func (c *consumer) sink() string {
	switch c.kind {
	case request:
		return fmt.Sprintf(`request: {subject: "chaos.%s", timeout: 800ms}`, c.name)
	case stream:
		return fmt.Sprintf(`jetstream: {subject: "%s.{device}", timeout: 800ms}`, archiveSubject)
	}
	return fmt.Sprintf(`webhook: {url: %q, timeout: 800ms}`, c.url)
}

// replies answers the router's requests, as the consumer's temper has it.
func (c *consumer) replies(nc *nats.Conn) error {
	_, err := nc.Subscribe("chaos."+c.name, func(m *nats.Msg) {
		go c.reply(m) // several calls are in flight at a time
	})
	if err != nil {
		return fmt.Errorf("serving the consumer %s: %w", c.name, err)
	}
	return nil
}

func (c *consumer) reply(m *nats.Msg) {
	var d delivery
	if err := json.Unmarshal(m.Data, &d); err != nil || d.ID == "" {
		c.garbled(d, m.Data)
		return
	}
	how := c.temper.treat()
	time.Sleep(how.delay)
	if how.takes {
		c.take(d)
	}
	answer := nats.NewMsg(m.Reply)
	refuse := func(code, text string) {
		answer.Header.Set(micro.ErrorCodeHeader, code)
		answer.Header.Set(micro.ErrorHeader, text)
	}
	switch how.mood {
	case well, slow:
	case failing:
		refuse("500", "out of order")
	case busy:
		refuse("429", "not so fast")
		answer.Header.Set("Retry-After", "1")
	case unavailable:
		refuse("503", "not now")
	default:
		return // it never answers
	}
	m.RespondMsg(answer) // the server may be gone by now
}

// makeArchive makes the stream of the archive, which is the consumer itself.
func makeArchive(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	archive, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: archiveStream, Subjects: []string{archiveSubject + ".>"}})
	if err != nil {
		return nil, fmt.Errorf("making the archive: %w", err)
	}
	return archive, nil
}

// readArchive takes what is stored in the archive, in its order, until ctx
// ends.
func (c *consumer) readArchive(ctx context.Context, archive jetstream.Stream) {
	for next := uint64(1); ctx.Err() == nil; {
		if msg, err := archived(ctx, archive, next); err == nil {
			next++
			var d delivery
			if err := json.Unmarshal(msg.Data, &d); err != nil || d.ID == "" {
				c.garbled(d, msg.Data)
			} else {
				c.take(d)
			}
			continue
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// archived reads one message; the error may be that there is none yet.
func archived(ctx context.Context, archive jetstream.Stream, sequence uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, ackWithin)
	defer cancel()
	return archive.GetMsg(ctx, sequence)
}

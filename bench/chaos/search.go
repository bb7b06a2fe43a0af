package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	fallbackPrefix = "TRIPLINE_FALLBACK_"
	deadStream     = "TRIPLINE_DEAD"
	searchWithin   = 30 * time.Second
)

// sightings is where in the server's streams triggers were found.
type sightings map[string][]string // by trigger id

func (s sightings) where(l loss) string {
	var own []string
	for _, text := range s[l.id] {
		if strings.Contains(text, l.consumer) {
			own = append(own, text)
		}
	}
	if len(own) == 0 {
		return "neither parked nor a dead letter"
	}
	return strings.Join(own, " and ")
}

// search reads the fallback queues and the dead letters.
func (r *run) search(ctx context.Context) (sightings, error) {
	ctx, cancel := context.WithTimeout(ctx, searchWithin)
	defer cancel()
	seen := sightings{}
	streams := []string{deadStream}
	for _, c := range r.consumers {
		streams = append(streams, fallbackPrefix+c.name)
	}
	for _, name := range streams {
		if err := r.searchStream(ctx, name, seen); err != nil {
			return seen, fmt.Errorf("looking for what is lost in %s: %w", name, err)
		}
	}
	return seen, nil
}

func (r *run) searchStream(ctx context.Context, name string, seen sightings) error {
	stream, err := r.fleet.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	for range info.State.Msgs {
		msg, err := reader.Next(jetstream.FetchMaxWait(2 * time.Second))
		if err != nil {
			return nil // the rest was delivered meanwhile
		}
		id := triggerID(msg.Data())
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("in %s at %d (%s) since %s", name, meta.Sequence.Stream, msg.Subject(), meta.Timestamp.Format(time.TimeOnly))
		seen[id] = append(seen[id], text)
	}
	return nil
}

// triggerID finds the id in a stored trigger.
func triggerID(data []byte) string {
	_, rest, _ := strings.Cut(string(data), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

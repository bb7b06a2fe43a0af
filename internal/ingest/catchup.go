package ingest

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// maxCatchUp is how many positions are filled in at most. A machine that lost
// its power loses what came within the last sync, which is far less.
const maxCatchUp = 1 << 18

// catchUp fills the stream with ticks until it is past all saved progress. It
// is behind when its end was lost, while the progress, which lies in another
// stream, was not.
func catchUp(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, cfg StreamConfig) error {
	state, name := stream.CachedInfo().State, stream.CachedInfo().Config.Name
	if state.LastSeq >= cfg.After {
		return nil
	}
	missing := cfg.After - state.LastSeq
	if missing > maxCatchUp {
		return fmt.Errorf("stream %s ends at %d, and locations up to %d have been judged: it was made anew or restored from an old copy. Remove it with `nats stream rm %s` to have it begin after them, or restore the state as well",
			name, state.LastSeq, cfg.After, name)
	}
	subject := tickSubjects(cfg.Patterns.namespace, cfg.Partitions)[0]
	for ; missing > 0; missing-- {
		if _, err := js.Publish(ctx, subject, nil); err != nil {
			return fmt.Errorf("filling stream %s up to %d: %w", name, cfg.After, err)
		}
	}
	return nil
}

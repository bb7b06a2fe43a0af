package jetqueue

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Fit makes room before queues are opened with new bounds: the server reserves
// each stream's bound, so one that is to shrink has to, before another can
// grow. want holds the bounds by consumer. A stream of no consumer in it, an
// orphan, shrinks to what it holds; no stream shrinks below that, and none
// grows. Nothing that is parked is lost.
func Fit(ctx context.Context, nc *nats.Conn, namespace string, want map[string]int64) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("fit the fallback streams: %w", err)
	}
	prefix := fallbackPrefix(namespace)
	list := js.ListStreams(ctx, jetstream.WithStreamListSubject(namespace+".fallback.>"))
	var shrink []jetstream.StreamConfig
	for info := range list.Info() {
		consumer, ours := strings.CutPrefix(info.Config.Name, prefix)
		if !ours {
			continue
		}
		bound := max(want[consumer], int64(info.State.Bytes), 1)
		if bound < info.Config.MaxBytes {
			info.Config.MaxBytes = bound
			shrink = append(shrink, info.Config)
		}
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("fit the fallback streams: %w", err)
	}
	for _, cfg := range shrink {
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("shrink stream %s to %d bytes: %w", cfg.Name, cfg.MaxBytes, err)
		}
	}
	return nil
}

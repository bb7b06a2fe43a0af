package jetqueue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Orphan is a fallback stream whose consumer isn't configured any more. A
// consumer of that name takes it over with all that is in it.
type Orphan struct {
	Consumer string
	Stream   string
	Items    uint64
	Bytes    uint64
}

// Orphans lists the fallback streams of a namespace that belong to none of the
// given consumers, by name.
func Orphans(ctx context.Context, nc *nats.Conn, namespace string, consumers []string) ([]Orphan, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("list orphaned fallback streams: %w", err)
	}
	prefix := fallbackPrefix(namespace)
	var orphans []Orphan
	list := js.ListStreams(ctx, jetstream.WithStreamListSubject(namespace+".fallback.>"))
	for info := range list.Info() {
		consumer, ours := strings.CutPrefix(info.Config.Name, prefix)
		if ours && !slices.Contains(consumers, consumer) {
			orphans = append(orphans, Orphan{consumer, info.Config.Name, info.State.Msgs, info.State.Bytes})
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list orphaned fallback streams: %w", err)
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return strings.Compare(a.Consumer, b.Consumer) })
	return orphans, nil
}

// RemoveOrphan deletes a consumer's fallback stream with all that is in it. It
// must not be open anywhere.
func RemoveOrphan(ctx context.Context, nc *nats.Conn, namespace, consumer string) error {
	js, err := jetstream.New(nc)
	if err == nil {
		err = js.DeleteStream(ctx, StreamName(namespace, consumer))
	}
	if err != nil {
		return fmt.Errorf("delete stream %s: %w", StreamName(namespace, consumer), err)
	}
	return nil
}

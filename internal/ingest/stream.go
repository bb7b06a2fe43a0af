package ingest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamName is the name of a namespace's location stream.
func StreamName(namespace string) string {
	return strings.ToUpper(namespace) + "_LOCATIONS"
}

// StreamConfig says what the location stream has to be like.
type StreamConfig struct {
	Patterns   *Patterns
	Partitions int
	MaxBytes   int64 // what the server reserves for it; must be above 0
	Replicas   int   // 0 means 1
	// After is the highest position that any saved progress names. The stream
	// must never give out a position up to it again: such a message would be
	// taken for one that was judged long ago.
	After uint64
}

// SetUpStream makes the location stream, or brings an existing one in line.
// Its subjects are the patterns and the ticks; a message is stored as
// `loc.<partition>.<subject>`. When it is full it refuses what is new; nothing
// in it ages, see [Trim].
//
// The number of partitions is fixed when the stream is made: what is stored
// lies under it. A stream with another number is left alone and refused.
func SetUpStream(ctx context.Context, js jetstream.JetStream, cfg StreamConfig) error {
	want := jetstream.StreamConfig{
		Name:        StreamName(cfg.Patterns.namespace),
		Description: "Locations, by partition; trimmed by the router",
		Subjects:    append(cfg.Patterns.Subjects(), cfg.Patterns.namespace+".tick.*"),
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    cfg.MaxBytes,
		Replicas:    max(cfg.Replicas, 1),
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source:      ">",
			Destination: destination(cfg.Partitions),
		},
	}
	stream, err := js.Stream(ctx, want.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		want.FirstSeq = cfg.After + 1
		if _, err = js.CreateStream(ctx, want); err != nil {
			return explain(ctx, js, want, "making", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("looking up stream %s: %w", want.Name, err)
	}
	have := stream.CachedInfo().Config
	if err := compatible(have, want, cfg.Partitions); err != nil {
		return err
	}
	if err := catchUp(ctx, js, stream, cfg); err != nil || same(have, want) {
		return err
	}
	// What an operator has set beside ours stays.
	have.Subjects, have.MaxBytes, have.Replicas = want.Subjects, want.MaxBytes, want.Replicas
	have.Discard, have.MaxAge, have.MaxMsgs, have.MaxMsgsPerSubject = want.Discard, 0, -1, -1
	if _, err := js.UpdateStream(ctx, have); err != nil {
		return explain(ctx, js, want, "updating", err)
	}
	return nil
}

func destination(partitions int) string { return fmt.Sprintf("loc.{{partition(%d)}}.>", partitions) }

var partitionCount = regexp.MustCompile(`^loc\.\{\{partition\((\d+)\)\}\}\.>$`)

// compatible tells what of an existing stream can't be changed into what is
// wanted.
func compatible(have, want jetstream.StreamConfig, partitions int) error {
	mapped := ""
	if have.SubjectTransform != nil {
		mapped = have.SubjectTransform.Destination
	}
	switch n := partitionCount.FindStringSubmatch(strings.ReplaceAll(mapped, " ", "")); {
	case n == nil:
		return fmt.Errorf("stream %s was not made by the router (it does not map its subjects to %s): choose another nats.namespace, or remove the stream with `nats stream rm %s`",
			have.Name, want.SubjectTransform.Destination, have.Name)
	case n[1] != strconv.Itoa(partitions):
		return fmt.Errorf("stream %s was made with %s partitions, ingest.partitions is %d: set it to %s, or drain the router, remove the stream with `nats stream rm %s`, and start anew",
			have.Name, n[1], partitions, n[1], have.Name)
	case have.Retention != want.Retention || have.Storage != want.Storage:
		return fmt.Errorf("stream %s has %v retention and %v storage, and needs %v and %v: remove it with `nats stream rm %s`, or choose another nats.namespace",
			have.Name, have.Retention, have.Storage, want.Retention, want.Storage, have.Name)
	}
	return nil
}

func same(have, want jetstream.StreamConfig) bool {
	return slices.Equal(have.Subjects, want.Subjects) &&
		have.MaxBytes == want.MaxBytes && have.Replicas == want.Replicas && have.Discard == want.Discard &&
		have.MaxAge == 0 && have.MaxMsgs <= 0 && have.MaxMsgsPerSubject <= 0
}

// Codes of JetStream's API that an operator can do something about.
const (
	errCodeOverlap      = 10065
	errCodeNoStorage    = 10047
	errCodeNoMemory     = 10028
	errCodeLimitReached = 10026
)

// explain adds to an error of the API what to change.
func explain(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, doing string, err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return fmt.Errorf("%s stream %s: %w", doing, want.Name, err)
	}
	switch api.ErrorCode {
	case errCodeOverlap:
		return fmt.Errorf("%s stream %s: %s: change ingest.subjects, or remove that stream: %w",
			doing, want.Name, overlapping(ctx, js, want), err)
	case errCodeNoStorage, errCodeNoMemory, errCodeLimitReached:
		return fmt.Errorf("%s stream %s: the server has no %d bytes left to reserve for it: lower ingest.max_bytes, or raise nats.max_store (the server's max_file_store): %w",
			doing, want.Name, want.MaxBytes, err)
	}
	return fmt.Errorf("%s stream %s: %w", doing, want.Name, err)
}

// overlapping names the streams that already capture one of the subjects.
func overlapping(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) string {
	var found []string
	for _, subject := range want.Subjects {
		names := js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
		for name := range names.Name() {
			if name != want.Name {
				found = append(found, fmt.Sprintf("stream %s captures %s already", name, subject))
			}
		}
	}
	if len(found) == 0 {
		return "another stream captures one of its subjects already"
	}
	return strings.Join(found, ", ")
}

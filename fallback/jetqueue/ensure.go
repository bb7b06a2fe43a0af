package jetqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ensure makes a stream, or brings one that exists to the limits of want.
// Nothing that is in it is lost: a lower max_bytes only refuses new ones. key
// is the setting that bounds the stream. Each question to the server is
// bounded by cfg.Timeout.
func ensure(ctx context.Context, js jetstream.JetStream, cfg Config, want jetstream.StreamConfig, key string) (jetstream.StreamState, error) {
	doing, state, err := reconcile(ctx, js, cfg, want)
	if err == nil {
		return state, nil
	}
	if e, ok := errors.AsType[*jetstream.APIError](err); ok &&
		(e.ErrorCode == codeInsufficientStorage || e.ErrorCode == codeInsufficientResources) {
		return state, fmt.Errorf("%s stream %s: the NATS server can't reserve %d bytes for it: lower %s, or make room: %w",
			doing, want.Name, want.MaxBytes, key, err)
	}
	return state, fmt.Errorf("%s stream %s: %w", doing, want.Name, err)
}

// reconcile does what ensure says, and names the step that it came to.
func reconcile(ctx context.Context, js jetstream.JetStream, cfg Config, want jetstream.StreamConfig) (doing string, state jetstream.StreamState, err error) {
	doing = "look at"
	info, err := within(ctx, cfg, func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, want.Name) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		doing = "make"
		info, err = within(ctx, cfg, func(ctx context.Context) (jetstream.Stream, error) { return js.CreateStream(ctx, want) })
	}
	if err != nil {
		return doing, state, err
	}
	have := info.Config
	if !ours(have, want) {
		return "take over", state, fmt.Errorf(
			"it is not one of Tripline's (subjects %q, %v retention, %v storage): rename it, or choose another nats.namespace",
			have.Subjects, have.Retention, have.Storage)
	}
	next, differs := limits(have, want)
	if !differs {
		return doing, info.State, nil
	}
	doing = "change the limits of"
	info, err = within(ctx, cfg, func(ctx context.Context) (jetstream.Stream, error) { return js.UpdateStream(ctx, next) })
	if err != nil {
		return doing, state, err
	}
	return doing, info.State, nil
}

// within asks the server one question, in bounded time.
func within(ctx context.Context, cfg Config, ask func(context.Context) (jetstream.Stream, error)) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	s, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// ours says whether a stream that exists has what can't be changed as we need
// it.
func ours(have, want jetstream.StreamConfig) bool {
	return have.Storage == want.Storage && have.Retention == want.Retention &&
		len(have.Subjects) == 1 && have.Subjects[0] == want.Subjects[0]
}

// limits returns have with the settings of want that we decide on, and whether
// that changes anything. All others stay as an operator has set them.
func limits(have, want jetstream.StreamConfig) (next jetstream.StreamConfig, differs bool) {
	next = have
	next.Discard, next.MaxBytes, next.MaxAge = want.Discard, want.MaxBytes, want.MaxAge
	next.AllowDirect, next.Duplicates = want.AllowDirect, want.Duplicates
	if want.Replicas > 0 {
		next.Replicas = want.Replicas
	}
	differs = next.Discard != have.Discard || next.MaxBytes != have.MaxBytes || next.MaxAge != have.MaxAge ||
		next.AllowDirect != have.AllowDirect || next.Duplicates != have.Duplicates || next.Replicas != have.Replicas
	return next, differs
}

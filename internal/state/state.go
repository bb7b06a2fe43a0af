// Package state keeps what must outlive the process in one JetStream stream:
// the presence of every device, the progress of every partition, and the
// versions of the fences that presences name. It implements [router.Store]
// and [router.FenceVersions].
//
// The stream keeps the last message of each subject:
//
//	<namespace>.state.meta                       format and number of partitions
//	<namespace>.state.epoch.<partition>          who owns the partition
//	<namespace>.state.progress.<partition>       offset, replay_from, clock
//	<namespace>.state.presence.<partition>.<id>  a device's encoded presence
//	<namespace>.state.fence.<id>                 a fence's last version
//
// A commit is an atomic batch, or a single message, that the server stores only
// while the epoch's last message is the committer's own.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// format is the version of what is stored. It rises when an older Tripline
// could not read it.
const format = 1

// Config says where the state lies.
type Config struct {
	// Namespace is the first token of the subjects, and in capitals the first
	// part of the stream's name.
	Namespace string
	// Partitions is how many there are. It can't change once state exists.
	Partitions int
	// MaxBytes bounds the stream; the server reserves it. It must be positive.
	MaxBytes int64
	// Replicas of the stream; 0 means 1.
	Replicas int
}

// StreamName returns the name of the stream that holds a namespace's state.
func StreamName(namespace string) string {
	return strings.ToUpper(namespace) + "_STATE"
}

// PartitionsError says that the state was written with another number of
// partitions than is configured.
type PartitionsError struct {
	Stream             string
	Stored, Configured int
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("stream %s was written with %d partitions and the configuration says %d: set ingest.partitions to %d, or delete the stream to start without any state",
		e.Stream, e.Stored, e.Configured, e.Stored)
}

// FormatError says that a newer Tripline wrote the state.
type FormatError struct {
	Stream           string
	Stored, Readable int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("stream %s has state format %d and this version of Tripline reads up to %d: start the newer version that wrote it, or delete the stream to start without any state",
		e.Stream, e.Stored, e.Readable)
}

// Store is the state of one namespace. It is safe for concurrent use, with
// one commit per partition at a time. Two owners of one partition need two
// stores: to one store, the last Claim is the owner.
type Store struct {
	cfg    Config
	js     jetstream.JetStream
	stream jetstream.Stream
	owner  string // tells our epochs from others'
	prefix string // of all subjects, with its dot
	// inFlight holds a place for each batch under way: the server allows 50
	// per stream and refuses more.
	inFlight  chan struct{}
	presences *presences
	versions  *Versions

	mu     sync.Mutex // guards epochs and the map, not what they point to
	epochs map[int]*epoch
}

// batchesInFlight leaves room for other replicas on the same stream.
const batchesInFlight = 12

// Open creates the stream if there is none, brings its bounds up to date,
// checks that this version can read it, and loads the fence versions.
func Open(ctx context.Context, js jetstream.JetStream, cfg Config) (*Store, error) {
	if cfg.Partitions <= 0 {
		return nil, fmt.Errorf("state: %d partitions", cfg.Partitions)
	}
	stream, err := js.CreateOrUpdateStream(ctx, StreamConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("state stream %s: %w", StreamName(cfg.Namespace), err)
	}
	s := &Store{
		cfg:      cfg,
		js:       js,
		stream:   stream,
		owner:    nuid.Next(),
		prefix:   cfg.Namespace + ".state.",
		inFlight: make(chan struct{}, batchesInFlight),
		epochs:   make(map[int]*epoch),
	}
	s.presences = &presences{s: s}
	if err := s.checkMeta(ctx); err != nil {
		return nil, err
	}
	if s.versions, err = loadVersions(ctx, s); err != nil {
		return nil, fmt.Errorf("load fence versions: %w", err)
	}
	return s, nil
}

// StreamConfig is how the stream is made.
func StreamConfig(cfg Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               StreamName(cfg.Namespace),
		Description:        "Tripline: presences, progress and fence versions",
		Subjects:           []string{cfg.Namespace + ".state.>"},
		Retention:          jetstream.LimitsPolicy,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		MaxBytes:           cfg.MaxBytes,
		MaxMsgsPerSubject:  1,
		Replicas:           max(cfg.Replicas, 1),
		AllowAtomicPublish: true,
	}
}

// Versions returns the fence versions.
func (s *Store) Versions() *Versions { return s.versions }

type meta struct {
	Format     int `json:"format"`
	Partitions int `json:"partitions"`
}

// checkMeta writes the meta message into a new stream, and compares it in an
// old one. Of several replicas that start at once one writes, all compare.
func (s *Store) checkMeta(ctx context.Context) error {
	subject := s.prefix + "meta"
	body, err := json.Marshal(meta{Format: format, Partitions: s.cfg.Partitions})
	if err != nil {
		return err
	}
	_, err = s.js.Publish(ctx, subject, body, jetstream.WithExpectLastSequenceForSubject(0, subject))
	if err == nil {
		return nil
	}
	if !wrongSequence(err) {
		return fmt.Errorf("write state meta: %w", err)
	}
	msg, err := s.stream.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return fmt.Errorf("read state meta: %w", err)
	}
	var m meta
	if err := json.Unmarshal(msg.Data, &m); err != nil {
		return fmt.Errorf("read state meta in stream %s: %w", StreamName(s.cfg.Namespace), err)
	}
	if m.Format > format {
		return &FormatError{StreamName(s.cfg.Namespace), m.Format, format}
	}
	if m.Partitions != s.cfg.Partitions {
		return &PartitionsError{StreamName(s.cfg.Namespace), m.Partitions, s.cfg.Partitions}
	}
	return nil
}

// wrongSequence says whether an expected last sequence was not met. A
// replicated stream has a code of its own for it.
func wrongSequence(err error) bool {
	api := apiError(err)
	return api != nil && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// apiError returns what the server answered; nil if err is no answer of it.
func apiError(err error) *jetstream.APIError {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api
	}
	if js, ok := errors.AsType[jetstream.JetStreamError](err); ok {
		return js.APIError()
	}
	return nil
}

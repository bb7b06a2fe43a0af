package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BucketName is the name of a namespace's bucket.
func BucketName(namespace string) string { return strings.ToUpper(namespace) + "_LEASES" }

// bucketBytes bounds the bucket: enough for a register of 1,024 partitions
// and hundreds of replicas.
const bucketBytes = 1 << 20

// bucket is where the replicas meet. It has the form of a NATS key-value
// bucket, except that followers answer nothing: they would be behind.
type bucket struct {
	js         jetstream.JetStream
	stream     jetstream.Stream
	prefix     string // of the subjects
	partitions int
}

// entries is what the key register holds.
type entries struct {
	Partitions []string `json:"partitions"` // ids of replicas, by partition
}

const (
	registerKey   = "register"
	replicaPrefix = "replica."
)

func openBucket(ctx context.Context, js jetstream.JetStream, cfg Config) (*bucket, error) {
	name := "KV_" + BucketName(cfg.Namespace)
	b := &bucket{js: js, prefix: "$KV." + BucketName(cfg.Namespace) + ".", partitions: cfg.Partitions}
	var err error
	b.stream, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Description: "Tripline: which replica runs which partition",
		Subjects: []string{b.prefix + ">"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, MaxBytes: bucketBytes,
		AllowRollup: true, Replicas: max(cfg.Replicas, 1),
	})
	if err != nil {
		return nil, fmt.Errorf("opening the bucket %s: %w", BucketName(cfg.Namespace), err)
	}
	return b, nil
}

// look reads everything. The register's revision is 0 if there is none yet.
func (b *bucket) look(ctx context.Context) (s seen, rev uint64, err error) {
	s = seen{replicas: map[string]entry{}, register: make([]string, b.partitions)}
	// The replicas first: whoever the register names had written its
	// heartbeat before, so nobody in it is taken for one without any.
	rev, err = b.readRegister(ctx, s.register)
	if err != nil {
		return s, 0, err
	}
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.prefix+replicaPrefix+">"))
	if err != nil {
		return s, 0, fmt.Errorf("listing the replicas: %w", err)
	}
	for subject := range info.State.Subjects {
		e, there, err := b.replica(ctx, strings.TrimPrefix(subject, b.prefix+replicaPrefix))
		if err != nil {
			return s, 0, err
		}
		if there {
			s.replicas[e.ID] = e
		}
	}
	return s, rev, nil
}

func (b *bucket) readRegister(ctx context.Context, into []string) (rev uint64, err error) {
	msg, err := b.stream.GetLastMsgForSubject(ctx, b.prefix+registerKey)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the register: %w", err)
	}
	var e entries
	if err := json.Unmarshal(msg.Data, &e); err != nil {
		return 0, fmt.Errorf("reading the register: %w", err)
	}
	if len(e.Partitions) != len(into) {
		return 0, fmt.Errorf("the register has %d partitions and the configuration says %d: all replicas need the same ingest.partitions", len(e.Partitions), len(into))
	}
	copy(into, e.Partitions)
	return msg.Sequence, nil
}

// replica reads a heartbeat; false if there is none.
func (b *bucket) replica(ctx context.Context, id string) (entry, bool, error) {
	msg, err := b.stream.GetLastMsgForSubject(ctx, b.prefix+replicaPrefix+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{}, false, nil
	}
	if err != nil {
		return entry{}, false, fmt.Errorf("reading a heartbeat: %w", err)
	}
	e := entry{rev: msg.Sequence}
	if err := json.Unmarshal(msg.Data, &e.Replica); err != nil {
		return entry{}, false, fmt.Errorf("reading the heartbeat of %s: %w", id, err)
	}
	e.ID = id
	return e, true, nil
}

// writeReplica replaces a heartbeat of revision rev, 0 for none. The error is
// errRefused if there is another by now.
func (b *bucket) writeReplica(ctx context.Context, r Replica, rev uint64) (uint64, error) {
	return b.write(ctx, replicaPrefix+r.ID, r, rev)
}

func (b *bucket) writeRegister(ctx context.Context, register []string, rev uint64) (uint64, error) {
	return b.write(ctx, registerKey, entries{register}, rev)
}

func (b *bucket) write(ctx context.Context, key string, value any, rev uint64) (uint64, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	subject := b.prefix + key
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data},
		jetstream.WithExpectLastSequenceForSubject(rev, subject), jetstream.WithRetryAttempts(0))
	if refused(err) {
		return 0, errRefused
	}
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", key, err)
	}
	return ack.Sequence, nil
}

// remove deletes a mark. That it is gone already is as good.
func (b *bucket) remove(ctx context.Context, rev uint64) error {
	err := b.stream.DeleteMsg(ctx, rev)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return nil
	}
	return err
}

// refused says whether the expected revision was not met. A replicated stream
// has a code of its own for it.
func refused(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
	}
	if js, ok := errors.AsType[jetstream.JetStreamError](err); ok && js.APIError() != nil {
		code := js.APIError().ErrorCode
		return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
	}
	return false
}

// Package jetqueue keeps parked triggers and dead letters in NATS JetStream:
// one stream per consumer, so that one sick consumer can't take the room of
// the others, and one stream for the dead letters of all.
//
// Nothing is read through JetStream consumers. The head of a slot is the next
// message of its subject, asked of the stream's leader, and what has been
// delivered is deleted: there is no redelivery timer, no acknowledgement
// window and no cursor that could stall, and a slot that waits costs the
// others nothing.
package jetqueue

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tripline/tripline/fallback"
)

// Defaults of a [Config].
const (
	DefaultNamespace    = "tripline"
	DefaultMaxBytes     = 1 << 30
	DefaultDeadMaxBytes = 64 << 20
	DefaultTimeout      = 5 * time.Second
	DefaultInFlight     = 512
)

const (
	// deadMaxAge is how long a dead letter is kept.
	deadMaxAge = 30 * 24 * time.Hour
	// dedupe is how long the server knows the id of a stored trigger.
	dedupe = 2 * time.Minute
)

// Config describes one consumer's queue. Only Consumer is required.
type Config struct {
	// Namespace begins the names of streams and subjects. "": DefaultNamespace.
	Namespace string
	// Consumer is the consumer's name, [a-z0-9][a-z0-9_-]{0,31}.
	Consumer string
	// MaxBytes bounds what is parked. The server reserves it when the stream
	// is made. 0: DefaultMaxBytes.
	MaxBytes int64
	// DeadMaxBytes bounds the dead letters of all consumers of the namespace
	// together. 0: DefaultDeadMaxBytes.
	DeadMaxBytes int64
	// Replicas is 1 to 5, on a cluster. 0: what the streams have, 1 for new
	// ones.
	Replicas int
	// Timeout bounds each question to the server and each wait for an
	// acknowledgement. 0: DefaultTimeout.
	Timeout time.Duration
	// InFlight is how many parks may be unacknowledged at once; further ones
	// wait their turn in memory. 0: DefaultInFlight.
	InFlight int
}

// name is what a namespace or consumer may be called: a subject token and a
// part of a stream name.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Validate names each setting that Open would refuse, and what is allowed.
func (c Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Namespace != "" && !name.MatchString(c.Namespace) {
		refuse("namespace %q: must match %s", c.Namespace, name)
	}
	if !name.MatchString(c.Consumer) {
		refuse("consumer %q: must match %s", c.Consumer, name)
	}
	if c.MaxBytes < 0 {
		refuse("max_bytes %d: must be positive", c.MaxBytes)
	}
	if c.DeadMaxBytes < 0 {
		refuse("dead_max_bytes %d: must be positive", c.DeadMaxBytes)
	}
	if c.Replicas < 0 || c.Replicas > 5 {
		refuse("replicas %d: allowed are 1 to 5", c.Replicas)
	}
	if c.Timeout < 0 {
		refuse("timeout %v: must be positive", c.Timeout)
	}
	if c.InFlight < 0 {
		refuse("in_flight %d: must be positive", c.InFlight)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.DeadMaxBytes == 0 {
		c.DeadMaxBytes = DefaultDeadMaxBytes
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.InFlight == 0 {
		c.InFlight = DefaultInFlight
	}
	return c
}

// StreamName returns the name of a consumer's fallback stream.
func StreamName(namespace, consumer string) string {
	return fallbackPrefix(namespace) + consumer
}

// DeadStreamName returns the name of a namespace's dead letter stream.
func DeadStreamName(namespace string) string { return strings.ToUpper(namespace) + "_DEAD" }

func fallbackPrefix(namespace string) string { return strings.ToUpper(namespace) + "_FALLBACK_" }

// parkedSubject and deadSubject are prefixes: partition and slot follow.
func parkedSubject(namespace, consumer string) string {
	return namespace + ".fallback." + consumer + "."
}

func deadSubject(namespace, consumer string) string {
	return namespace + ".dead." + consumer + "."
}

// slotTokens are a slot's last two tokens of a subject.
func slotTokens(s fallback.Slot) string {
	return strconv.Itoa(s.Partition) + "." + strconv.Itoa(s.Index)
}

// parseSlot reads them back.
func parseSlot(subject, prefix string) (fallback.Slot, error) {
	rest, ok := strings.CutPrefix(subject, prefix)
	p, i, both := strings.Cut(rest, ".")
	partition, err1 := strconv.Atoi(p)
	index, err2 := strconv.Atoi(i)
	if !ok || !both || err1 != nil || err2 != nil {
		return fallback.Slot{}, fmt.Errorf("subject %q isn't %s<partition>.<slot>", subject, prefix)
	}
	return fallback.Slot{Partition: partition, Index: index}, nil
}

// parkedStream is the stream that c wants for its consumer.
func (c Config) parkedStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamName(c.Namespace, c.Consumer),
		Description: "Triggers parked for consumer " + c.Consumer,
		Subjects:    []string{parkedSubject(c.Namespace, c.Consumer) + "*.*"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		// New ones are refused rather than old ones lost.
		Discard:    jetstream.DiscardNew,
		MaxBytes:   c.MaxBytes,
		Duplicates: dedupe,
		Replicas:   c.Replicas,
		// Direct gets are answered by followers too, which may be behind.
		AllowDirect: false,
	}
}

// deadStream is the stream that c wants for the namespace's dead letters.
func (c Config) deadStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        DeadStreamName(c.Namespace),
		Description: "Triggers that were given up on",
		Subjects:    []string{c.Namespace + ".dead.*.*.*"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    c.DeadMaxBytes,
		MaxAge:      deadMaxAge,
		Duplicates:  dedupe,
		Replicas:    c.Replicas,
		AllowDirect: false,
	}
}

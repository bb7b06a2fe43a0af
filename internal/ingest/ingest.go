// Package ingest takes locations from NATS, decodes them into fixes and hands
// them to the partitions, in order.
//
// In durable mode a JetStream stream captures the locations and is each
// partition's log: see [Durable]. In core mode they come straight from a
// subscription: see [Core]. Both take `<namespace>.submit.<device>` requests,
// which are answered once the fix has been judged.
package ingest

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// MaxPartitions bounds how many partitions there can be.
const MaxPartitions = 1024

// Config says what a source reads. All fields but Hooks are required.
type Config struct {
	// Conn carries everything: what is read, submitted, answered and refused.
	// It should reconnect for ever and not buffer while it is away.
	Conn       *nats.Conn
	Patterns   *Patterns
	Partitions int // 1..MaxPartitions; fixed once the stream exists
	// Shared, in durable mode, reads all partitions through one consumer
	// without a filter. For the server that is two to five times less work
	// than a filtered consumer for each, so it is right where this process
	// has most of the partitions. A partition that takes nothing for a second
	// or two holds up the others so long, and is then read by itself.
	Shared bool
	// Alone says, when the reading of a partition begins, that it is to be
	// read by itself after all: because other processes have most of the
	// partitions. nil: never. See also [Durable.Separate].
	Alone func() bool
	Hooks Hooks
}

func (c Config) check() error {
	switch {
	case c.Conn == nil:
		return errors.New("ingest: no connection")
	case c.Patterns == nil:
		return errors.New("ingest: no subjects")
	case c.Partitions < 1 || c.Partitions > MaxPartitions:
		return fmt.Errorf("ingest: %d partitions; allowed are 1 to %d", c.Partitions, MaxPartitions)
	}
	return nil
}

// Hooks tell what happens inside a source. Any of them may be nil. They are
// called from several goroutines and must not block.
type Hooks struct {
	// Refused: a location was refused.
	Refused func(Reason)
	// Ignored: a payload carried no location, see [ErrIgnored].
	Ignored func()
	// Lost: the log no longer has what a partition has not read. sequences
	// counts positions of the whole log, of which the partition had a share.
	Lost func(partition int, sequences uint64)
	// Dropped: in core mode, messages came faster than they were taken.
	Dropped func(messages int)
	// Rebuilt: a partition's reader broke, and goes on from where it was.
	Rebuilt func(partition int, cause error)
}

func (h *Hooks) refused(r Reason) {
	if h.Refused != nil {
		h.Refused(r)
	}
}

func (h *Hooks) ignored() {
	if h.Ignored != nil {
		h.Ignored()
	}
}

func (h *Hooks) lost(partition int, sequences uint64) {
	if h.Lost != nil {
		h.Lost(partition, sequences)
	}
}

func (h *Hooks) dropped(messages int) {
	if h.Dropped != nil && messages > 0 {
		h.Dropped(messages)
	}
}

func (h *Hooks) rebuilt(partition int, cause error) {
	if h.Rebuilt != nil {
		h.Rebuilt(partition, cause)
	}
}

package router

import (
	"context"
	"time"

	"github.com/tripline/tripline/geofence"
)

// Message is one entry of a partition's log, decoded.
type Message struct {
	Kind MessageKind
	// Seq is its position: the stream's sequence, or in core mode the receipt
	// time in unix microseconds, made to rise.
	Seq uint64
	// Stored is the log's timestamp, unix milliseconds. It never falls.
	Stored int64
	// Fix is set for FixMessage; its Seq and Stored are the message's.
	Fix geofence.Fix
	// Reply is where the answer of a submit request goes, "" otherwise.
	Reply string
	// Traceparent is the W3C trace context that came with it, or "".
	Traceparent string
	// Nonce tells a tick's sender its own tick.
	Nonce string
}

// MessageKind says what a message is.
type MessageKind uint8

// The kinds of message.
const (
	// FixMessage carries a fix.
	FixMessage MessageKind = iota
	// TickMessage carries nothing but the time.
	TickMessage
	// RefusedMessage was no valid fix; ingest has counted and answered it. It
	// still moves the time and the progress.
	RefusedMessage
)

// Batch is some messages of one partition, in order.
type Batch struct {
	Messages []Message
	Read     time.Time // when the newest was read, with a monotonic clock
	Release  func()    // gives the batch, and all that its fixes point to, back
}

// Source reads the log of a partition.
type Source interface {
	// Read sends the partition's messages from sequence from on, in order,
	// until ctx ends (nil) or the reader is broken beyond its own repair.
	// firstSeq of the log after from is a loss: it is reported through Gap of
	// the source's hooks, not as an error. One Read per partition at a time.
	Read(ctx context.Context, partition int, from uint64, out chan<- *Batch) error
	// Tick stores a tick for the partition.
	Tick(ctx context.Context, partition int, nonce string) error
	// Answer answers a submit request. It doesn't wait.
	Answer(reply string, a Answer)
}

// Answer is what a submit request is told.
type Answer struct {
	OK          bool   `json:"ok"`
	Seq         uint64 `json:"seq,omitempty"`
	Transitions int    `json:"transitions"`
	Reason      string `json:"reason,omitempty"`
	Error       string `json:"error,omitempty"`
}

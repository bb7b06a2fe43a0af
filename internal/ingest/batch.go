package ingest

import "github.com/tripline/tripline/router"

const (
	// batchSize is how many messages a batch has at most.
	batchSize = 256
	// spareBatches is how many released batches a reader keeps for reuse.
	spareBatches = 4
)

// batches makes the batches of one reader, and makes them again of those that
// were released.
type batches struct{ spare chan *router.Batch }

func newBatches() batches { return batches{spare: make(chan *router.Batch, spareBatches)} }

func (b batches) get() *router.Batch {
	select {
	case batch := <-b.spare:
		return batch
	default:
	}
	batch := &router.Batch{Messages: make([]router.Message, 0, batchSize)}
	batch.Release = func() {
		clear(batch.Messages) // payloads must not outlive the batch
		batch.Messages = batch.Messages[:0]
		select {
		case b.spare <- batch:
		default:
		}
	}
	return batch
}

// next appends a zero message to a batch that isn't full and returns it.
func next(batch *router.Batch) *router.Message {
	n := len(batch.Messages)
	batch.Messages = batch.Messages[:n+1]
	return &batch.Messages[n]
}

func full(batch *router.Batch) bool { return len(batch.Messages) == cap(batch.Messages) }

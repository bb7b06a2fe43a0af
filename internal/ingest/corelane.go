package ingest

import (
	"sync"

	"github.com/tripline/tripline/router"
)

// coreLane is what waits for one partition in core mode. Messages are decoded
// where they arrive, straight into the batch that is being filled. It is
// handed over when its receiver says so; while the partition waits for work it
// gets it from there at once, and only when it is busy does its reader hand
// over what has gathered meanwhile.
type coreLane struct {
	c *Core
	// wake tells the reader that there is something to hand over.
	wake chan struct{}

	mu      sync.Mutex // guards what follows; nothing waits under it
	out     chan<- *router.Batch
	batches batches
	filling *router.Batch   // nil if nobody reads the partition here
	full    []*router.Batch // the oldest first
	handing bool            // the reader holds a batch that comes before all these
	fed     bool            // a hand is to come
	next    uint64          // the lowest position that is free
	clock   int64           // the highest receipt time, unix ms
}

// What became of something that was put into a lane.
type laneResult uint8

const (
	laneTook laneResult = iota
	laneFed             // the first since the last hand
	laneFull
	laneClosed // nobody reads the partition here
)

// open begins a read; false if there is one already.
func (l *coreLane) open(from uint64, out chan<- *router.Batch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filling != nil {
		return false
	}
	l.out, l.batches, l.next = out, newBatches(), from
	l.filling = l.batches.get()
	return true
}

// close ends it. What is left is lost, as core mode says.
func (l *coreLane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out, l.filling, l.full, l.handing, l.fed = nil, nil, nil, false, false
}

// put decodes a message into the lane, to be handed over by hand. It never
// waits.
func (l *coreLane) put(got received) laneResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filling == nil {
		return laneClosed
	}
	if full(l.filling) {
		if len(l.full) == coreBatches {
			return laneFull
		}
		l.full = append(l.full, l.filling)
		l.filling = l.batches.get()
	}
	l.fill(next(l.filling), got)
	l.filling.Read = got.at
	if l.fed {
		return laneTook
	}
	l.fed = true
	return laneFed
}

// hand passes on what was put: to the partition, or if that is busy to the
// reader.
func (l *coreLane) hand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fed = false
	if l.filling == nil || len(l.filling.Messages) == 0 {
		return // the reader has come first, or is gone
	}
	if !l.handing && len(l.full) == 0 {
		select {
		case l.out <- l.filling:
			l.filling = l.batches.get()
			return
		default:
		}
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the oldest batch for the reader to hand over, nil if there is
// none. Until the next take nothing gets past it.
func (l *coreLane) take() *router.Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.filling
	switch {
	case len(l.full) > 0:
		batch = l.full[0]
		l.full[0] = nil
		l.full = l.full[1:]
	case len(batch.Messages) > 0:
		l.filling = l.batches.get()
	default:
		batch = nil
	}
	l.handing = batch != nil
	return batch
}

// fill gives a message its position.
func (l *coreLane) fill(m *router.Message, got received) {
	m.Seq = max(l.next, uint64(got.at.UnixMicro()))
	l.next = m.Seq + 1
	l.clock = max(l.clock, got.at.UnixMilli())
	m.Stored = l.clock
	if got.msg == nil {
		m.Kind = router.TickMessage
		m.Nonce = got.nonce
		return
	}
	m.Reply = l.c.replyOf(got.msg)
	l.c.fill(m, got.msg.Subject, got.msg.Data, got.msg.Header)
}

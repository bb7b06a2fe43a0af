package ingest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/router"
)

const (
	// coreQueue is how many messages of one partition may wait.
	coreQueue = 8192
	// What may wait in one subscription; it only does if the process is
	// short of CPU.
	corePendingMessages = 65536
	corePendingBytes    = 64 << 20
	// dropsEvery is how often the drops of the subscriptions are counted.
	dropsEvery = time.Second
)

// Core takes locations straight from a subscription: the lowest latency, and
// at most once. A message's position is the time at which it was received, in
// unix microseconds, made to rise within its partition.
//
// A location or a submit that is a request is answered.
type Core struct {
	intake
	partitions int

	mu     sync.RWMutex    // guards all below; what is done under it doesn't block
	queues []chan received // by partition; nil if nobody reads it
	read   []bool          // by partition: it has been read
	unread int             // how many have not

	allRead chan struct{} // closed when unread is 0
}

// received is a message, or a tick if it has none, and when it came.
type received struct {
	msg   *nats.Msg
	nonce string
	at    time.Time
}

// NewCore returns a source that subscribes to cfg's patterns.
func NewCore(cfg Config) (*Core, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Core{
		intake:     newIntake(cfg),
		partitions: cfg.Partitions,
		queues:     make([]chan received, cfg.Partitions),
		read:       make([]bool, cfg.Partitions),
		unread:     cfg.Partitions,
		allRead:    make(chan struct{}),
	}, nil
}

// Run subscribes, once each partition is read, until ctx ends: before that
// nobody would hear what is sent.
func (c *Core) Run(ctx context.Context) (err error) {
	select {
	case <-c.allRead:
	case <-ctx.Done():
		return nil
	}
	var subs []*nats.Subscription
	defer func() {
		for _, sub := range subs {
			if e := unsubscribe(sub); err == nil {
				err = e
			}
		}
	}()
	for _, subject := range append(c.patterns.Subjects(), c.submitPrefix()+">") {
		sub, err := c.nc.Subscribe(subject, c.receive)
		if err != nil {
			return fmt.Errorf("subscribing to %s: %w", subject, err)
		}
		subs = append(subs, sub)
		if err := sub.SetPendingLimits(corePendingMessages, corePendingBytes); err != nil {
			return fmt.Errorf("limiting what waits on %s: %w", subject, err)
		}
	}
	if err := c.heard(ctx); err != nil {
		return err
	}
	c.watchDrops(ctx, subs)
	return nil
}

// watchDrops counts what the subscriptions had no room for, until ctx ends.
func (c *Core) watchDrops(ctx context.Context, subs []*nats.Subscription) {
	ticker := time.NewTicker(dropsEvery)
	defer ticker.Stop()
	seen := make([]int, len(subs))
	for {
		for i, sub := range subs {
			if n, err := sub.Dropped(); err == nil {
				c.hooks.dropped(n - seen[i])
				seen[i] = n
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// receive sorts a message to its partition. It never waits: a partition that
// is behind loses its own messages, not those of others.
func (c *Core) receive(msg *nats.Msg) {
	if device, ok := strings.CutPrefix(msg.Subject, c.submitPrefix()); ok {
		subject, err := c.patterns.Subject(device)
		if err != nil {
			m := router.Message{Reply: c.replyOf(msg)}
			c.turnDown(&m, msg.Subject, msg.Data, err)
			return
		}
		msg.Subject = subject
	}
	p := router.PartitionOf(msg.Subject, c.partitions)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.queues[p] == nil {
		return
	}
	select {
	case c.queues[p] <- received{msg: msg, at: time.Now()}:
	default:
		c.hooks.dropped(1)
	}
}

// Tick hands a tick to the partition's reader.
func (c *Core) Tick(ctx context.Context, partition int, nonce string) error {
	c.mu.RLock()
	queue := c.queues[partition]
	c.mu.RUnlock()
	if queue == nil {
		return fmt.Errorf("tick of partition %d: nobody reads it", partition)
	}
	select {
	case queue <- received{nonce: nonce, at: time.Now()}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read implements [router.Source]. Positions begin at from or at the present
// time, whichever is higher, so that they don't fall when the clock was set
// back between two runs.
func (c *Core) Read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	queue := make(chan received, coreQueue)
	c.mu.Lock()
	if c.queues[partition] != nil {
		c.mu.Unlock()
		return fmt.Errorf("partition %d is being read already", partition)
	}
	c.queues[partition] = queue
	if !c.read[partition] {
		c.read[partition] = true
		if c.unread--; c.unread == 0 {
			close(c.allRead)
		}
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.queues[partition] = nil
		c.mu.Unlock()
	}()

	r := coreReader{c: c, next: from}
	batches := newBatches()
	filling := batches.get()
	for {
		in, out := queue, out
		if full(filling) {
			in = nil
		}
		if len(filling.Messages) == 0 {
			out = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case out <- filling:
			filling = batches.get()
		case first := <-in:
			r.fill(next(filling), first)
			for len(in) > 0 && !full(filling) {
				r.fill(next(filling), <-in)
			}
			filling.Read = time.Now()
		}
	}
}

// coreReader gives the messages of one partition their positions.
type coreReader struct {
	c     *Core
	next  uint64 // the lowest position that is free
	clock int64  // the highest receipt time, unix ms
}

func (r *coreReader) fill(m *router.Message, got received) {
	m.Seq = max(r.next, uint64(got.at.UnixMicro()))
	r.next = m.Seq + 1
	r.clock = max(r.clock, got.at.UnixMilli())
	m.Stored = r.clock
	if got.msg == nil {
		m.Kind = router.TickMessage
		m.Nonce = got.nonce
		return
	}
	m.Reply = r.c.replyOf(got.msg)
	r.c.fill(m, got.msg.Subject, got.msg.Data, got.msg.Header)
}

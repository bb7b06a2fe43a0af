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
	// coreBatches is how many full batches of one partition may wait.
	coreBatches = 32
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
	lanes      []*coreLane // by partition

	mu      sync.Mutex    // guards read and unread
	read    []bool        // by partition: it has been read
	unread  int           // how many have not
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
	c := &Core{
		intake:     newIntake(cfg),
		partitions: cfg.Partitions,
		lanes:      make([]*coreLane, cfg.Partitions),
		read:       make([]bool, cfg.Partitions),
		unread:     cfg.Partitions,
		allRead:    make(chan struct{}),
	}
	for p := range c.lanes {
		c.lanes[p] = &coreLane{c: c, wake: make(chan struct{}, 1)}
	}
	return c, nil
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
		r := &receiver{c: c}
		sub, err := c.nc.Subscribe(subject, r.receive)
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

// receiver takes the messages of one subscription, which calls it from one
// goroutine.
type receiver struct {
	c     *Core
	fed   []*coreLane // lanes that hold something it has not handed over
	taken int         // messages since it last did
}

// handEvery bounds how many messages are taken before their lanes hand them
// over, though more wait.
const handEvery = 128

// receive sorts a message to its partition. It never waits: a partition that
// is behind loses its own messages, not those of others. The lanes hand over
// once nothing more waits in the subscription: passing on each message by
// itself would cost a wake-up per message just when there is little CPU.
func (r *receiver) receive(msg *nats.Msg) {
	r.sort(msg)
	r.taken++
	// The message at hand still counts as pending.
	if pending, _, err := msg.Sub.Pending(); err == nil && pending > 1 && r.taken < handEvery {
		return
	}
	for _, lane := range r.fed {
		lane.hand()
	}
	r.fed, r.taken = r.fed[:0], 0
}

func (r *receiver) sort(msg *nats.Msg) {
	c := r.c
	if device, ok := strings.CutPrefix(msg.Subject, c.submitPrefix()); ok {
		subject, err := c.patterns.Subject(device)
		if err != nil {
			m := router.Message{Reply: c.replyOf(msg)}
			c.turnDown(&m, msg.Subject, msg.Data, err)
			return
		}
		msg.Subject = subject
	}
	lane := c.lanes[router.PartitionOf(msg.Subject, c.partitions)]
	switch lane.put(received{msg: msg, at: time.Now()}) {
	case laneFed:
		r.fed = append(r.fed, lane)
	case laneFull:
		c.hooks.dropped(1)
	}
}

// Tick hands a tick to the partition's reader.
func (c *Core) Tick(_ context.Context, partition int, nonce string) error {
	lane := c.lanes[partition]
	switch lane.put(received{nonce: nonce, at: time.Now()}) {
	case laneClosed:
		return fmt.Errorf("tick of partition %d: nobody reads it", partition)
	case laneFull:
		return fmt.Errorf("tick of partition %d: it is behind", partition)
	}
	lane.hand()
	return nil
}

// Read implements [router.Source]. Positions begin at from or at the present
// time, whichever is higher, so that they don't fall when the clock was set
// back between two runs.
func (c *Core) Read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	lane := c.lanes[partition]
	if !lane.open(from, out) {
		return fmt.Errorf("partition %d is being read already", partition)
	}
	defer lane.close()
	c.noteRead(partition)
	for {
		for batch := lane.take(); batch != nil; batch = lane.take() {
			select {
			case <-ctx.Done():
				return nil
			case out <- batch:
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-lane.wake:
		}
	}
}

// noteRead tells Run once every partition is read.
func (c *Core) noteRead(partition int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read[partition] {
		return
	}
	c.read[partition] = true
	if c.unread--; c.unread == 0 {
		close(c.allRead)
	}
}

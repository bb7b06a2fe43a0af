package live

import "sync"

// Bounds of what waits for one client between two flushes.
const (
	maxTriggers = 256
	maxNotices  = 512
	maxClients  = 64
)

// notice is a rare event that is sent one by one.
type notice struct {
	event string
	body  any
}

// client is what waits for one watcher. Publishers put in, its request's
// goroutine takes out.
type client struct {
	// seen is up to where the client has taken positions. It belongs to the
	// client's goroutine.
	seen uint64

	mu      sync.Mutex // held for a copy, never over a write to the network
	pending pending
}

// pending is what one flush takes.
type pending struct {
	triggers  ring[Trigger]
	notices   ring[notice]
	consumers []Consumer
	snapshot  bool // consumers was set
	fences    bool
}

func newClient() *client {
	return &client{pending: pending{
		triggers: ring[Trigger]{limit: maxTriggers},
		notices:  ring[notice]{limit: maxNotices},
	}}
}

func (c *client) trigger(t Trigger) {
	c.mu.Lock()
	c.pending.triggers.push(t)
	c.mu.Unlock()
}

func (c *client) notice(n notice) {
	c.mu.Lock()
	c.pending.notices.push(n)
	c.mu.Unlock()
}

func (c *client) setConsumers(list []Consumer) {
	c.mu.Lock()
	c.pending.consumers, c.pending.snapshot = list, true
	c.mu.Unlock()
}

func (c *client) setFences() {
	c.mu.Lock()
	c.pending.fences = true
	c.mu.Unlock()
}

// taken is what a client sends next.
type taken struct {
	triggers  []Trigger
	notices   []notice
	consumers []Consumer
	snapshot  bool
	fences    bool
	dropped   dropped
}

// take empties what waits; the consumers' state stays unless it is wanted.
// The slices of t are reused.
func (c *client) take(t *taken, snapshot bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.pending
	t.triggers, t.dropped.Triggers = p.triggers.drain(t.triggers[:0])
	t.notices, t.dropped.Notices = p.notices.drain(t.notices[:0])
	t.fences, p.fences = p.fences, false
	t.consumers, t.snapshot = nil, false
	if snapshot {
		t.consumers, t.snapshot = p.consumers, p.snapshot
		p.consumers, p.snapshot = nil, false
	}
}

// forgotten adds the devices that were forgotten to a set.
func (t *taken) forgotten(to map[string]bool) {
	for _, n := range t.notices {
		if f, ok := n.body.(forgotten); ok {
			to[f.Device] = true
		}
	}
}

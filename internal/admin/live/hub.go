// Package live tells watching browsers what happens: positions, triggers,
// breaker changes and consumers' states, as server-sent events.
//
// A [Hub] is called from hot paths. While nobody watches, a position or a
// trigger is one atomic load; breaker changes and probes, which are rare, are
// remembered for those who come later. While somebody watches, a publish is a
// short critical section; it never waits for a client. What a client can't take in time is coalesced (only the
// newest position of a device, only the newest state of the consumers) or
// dropped oldest first and counted, and a client that takes nothing at all is
// cut off.
package live

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what a Hub greets its clients with.
type Config struct {
	// Version and Namespace are shown to the operator.
	Version, Namespace string
	// Started is when the process started; a client that sees another value
	// after a reconnect knows that it talks to a new process.
	Started time.Time
	// Positions yields the newest position of every known device, in portions,
	// for a client that has just come. It may take its time, until ctx ends:
	// the client's stream goes on meanwhile. The hub may write to what it
	// gets. nil: a device shows from its next fix on.
	Positions func(ctx context.Context) iter.Seq[[]Position]
	// GoneAfter is how long nothing must have been heard of a device for a
	// client to take it off its map. 0: [GoneAfter].
	GoneAfter time.Duration
}

// GoneAfter is how long a device that is not heard of stays on a map, unless
// the configuration says otherwise.
const GoneAfter = time.Hour

// Hub hands what is published to every watching client. The zero value isn't
// usable; see [New]. All methods may be called at once from any goroutine.
type Hub struct {
	config Config

	// clients is nil while nobody watches. The slice is never written to
	// after it is stored; join and leave store a copy.
	clients atomic.Pointer[[]*client]

	// joining orders join and leave; nothing else takes it. Who also needs
	// the memory's lock takes that first.
	joining sync.Mutex

	positions positions
	memory    memory
}

// New makes a hub. It has no goroutine of its own: a client lives in the
// goroutine of its request.
func New(config Config) *Hub {
	if config.GoneAfter == 0 {
		config.GoneAfter = GoneAfter
	}
	h := &Hub{config: config, memory: memory{byName: map[string]*past{}}}
	h.positions.init()
	return h
}

// Watched tells whether anybody watches. What is costly to gather need not be
// gathered otherwise; the publishing methods ask by themselves.
func (h *Hub) Watched() bool { return h.clients.Load() != nil }

// Position publishes where a device is.
func (h *Hub) Position(p Position) {
	if h.Watched() {
		h.positions.put(p)
	}
}

// Positions publishes where several devices are. The slice stays the caller's.
func (h *Hub) Positions(list []Position) {
	if !h.Watched() {
		return
	}
	for _, p := range list {
		h.positions.put(p)
	}
}

// Trigger publishes a transition and the consumers that it was addressed to.
// The hub keeps t.Consumers: nobody writes to it afterwards.
func (h *Hub) Trigger(t Trigger) {
	for _, c := range h.watching() {
		c.trigger(t)
	}
}

// Forget publishes that a device is known no more. If it sends again, it
// shows again.
func (h *Hub) Forget(device string) {
	h.positions.remove(device)
	h.notice(notice{event: eventForgotten, body: forgotten{device}})
}

// Breaker publishes a change of a breaker's state, and remembers it for a
// while.
func (h *Hub) Breaker(b Breaker) {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.memory.of(b.Consumer, time.Now()).changes.push(b)
	h.notice(notice{event: eventBreaker, body: b})
}

// Probe publishes what became of a probe, and remembers it for a while.
func (h *Hub) Probe(p Probe) {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.memory.of(p.Consumer, time.Now()).probes.push(p)
	h.notice(notice{event: eventProbe, body: p})
}

func (h *Hub) notice(n notice) {
	for _, c := range h.watching() {
		c.notice(n)
	}
}

// Consumers publishes the state of all consumers; a client gets the newest at
// most twice a second. What is remembered of a consumer that isn't in the list
// is forgotten. The hub keeps the slice: nobody writes to it afterwards.
func (h *Hub) Consumers(list []Consumer) {
	h.memory.sample(list, time.Now())
	for _, c := range h.watching() {
		c.setConsumers(list)
	}
}

// Fences publishes that the set of fences has changed.
func (h *Hub) Fences() {
	for _, c := range h.watching() {
		c.setFences()
	}
}

func (h *Hub) watching() []*client {
	if list := h.clients.Load(); list != nil {
		return *list
	}
	return nil
}

// join makes c a watcher, and returns what was before; false if there are too
// many.
func (h *Hub) join(c *client) (before []History, ok bool) {
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	h.joining.Lock()
	defer h.joining.Unlock()
	now := h.watching()
	if len(now) >= maxClients {
		return nil, false
	}
	c.seen = h.positions.now()
	next := append(slices.Clip(slices.Clone(now)), c)
	h.clients.Store(&next)
	return h.memory.histories(time.Now()), true
}

// leave ends what join began. The last one out forgets the positions: from
// then on they would grow old.
func (h *Hub) leave(c *client) {
	h.joining.Lock()
	defer h.joining.Unlock()
	next := slices.DeleteFunc(slices.Clone(h.watching()), func(o *client) bool { return o == c })
	if len(next) > 0 {
		h.clients.Store(&next)
		return
	}
	h.clients.Store(nil)
	h.positions.clear()
}

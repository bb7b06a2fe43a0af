package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/router"
)

// errHeldUp is why a partition is read by itself from then on.
var errHeldUp = errors.New("its partition held up the others, and is read by itself from here")

// errSeparated is why one goes on by itself that was told to.
var errSeparated = errors.New("it was told to be read by itself from here")

const (
	// A member that took nothing at this many looks in a row is on its own
	// from then on: a partition that waits for a consumer's full queue must
	// not keep the others from theirs.
	stuckLooks = 3
	lookEvery  = 500 * time.Millisecond
)

// errJoined ends a session of the shared reader because a partition joined
// that has to be read from an earlier position.
var errJoined = errors.New("a partition joined")

// shared reads all partitions that anybody asks for through one consumer, and
// sorts the messages by partition. It runs while there is a member.
type shared struct {
	d *Durable
	// wake tells the loop that a member has room again, or that one joined.
	wake chan struct{}

	mu      sync.Mutex // guards what follows, and the members' tracks; nothing blocks under it
	members []*member  // by partition; nil if it is not read
	count   int
	next    uint64 // where the consumer is: what began has seen all below
	rejoin  bool   // somebody joined since the session began
	running bool
	cancel  context.CancelFunc
	done    chan struct{} // closed when the goroutine of the last run has ended
}

// member is a partition that is being read.
type member struct {
	track
	began bool               // a session since it joined has begun
	stuck int                // looks in a row at which it had no room
	in    chan *router.Batch // closed when reading has failed for good, after err is set
	// err is why; with errHeldUp or errSeparated, what is in filling was not
	// handed over. Both are read after in was closed.
	err error
}

func newShared(d *Durable, partitions int) *shared {
	done := make(chan struct{})
	close(done)
	return &shared{d: d, wake: make(chan struct{}, 1), members: make([]*member, partitions), done: done}
}

func (s *shared) read(ctx context.Context, partition int, from uint64, out chan<- *router.Batch) error {
	m := &member{track: newTrack(s.d, partition, from), in: make(chan *router.Batch, 1)}
	if err := s.join(ctx, m); err != nil {
		return err
	}
	defer s.leave(m)
	for {
		select {
		case <-ctx.Done():
			return nil
		case batch, ok := <-m.in:
			if !ok && (errors.Is(m.err, errHeldUp) || errors.Is(m.err, errSeparated)) {
				return s.d.readAlone(ctx, partition, m.unread(), out)
			}
			if !ok {
				return fmt.Errorf("reading partition %d: %w", partition, m.err)
			}
			s.wakeUp()
			select {
			case out <- batch:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (s *shared) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// join adds a member, and starts the loop for the first.
func (s *shared) join(ctx context.Context, m *member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[m.partition] != nil {
		return fmt.Errorf("partition %d is being read already", m.partition)
	}
	s.members[m.partition] = m
	s.count++
	s.rejoin = true
	s.wakeUp()
	if s.running {
		return nil
	}
	before := s.done
	s.done = make(chan struct{})
	s.running = true
	// The loop outlives the Read that started it.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.run(run, before, s.done)
	return nil
}

// leave removes a member; the last one waits for the loop to end.
func (s *shared) leave(m *member) {
	s.mu.Lock()
	if s.members[m.partition] == m {
		s.members[m.partition] = nil
	}
	s.count--
	last, done := s.count == 0, s.done
	if last {
		s.running = false
		s.cancel()
	}
	s.mu.Unlock()
	if last {
		<-done
	}
}

// run reads until there is no member left, or nothing can be mended. Only one
// runs at a time.
func (s *shared) run(ctx context.Context, before <-chan struct{}, done chan struct{}) {
	defer close(done)
	<-before
	err := s.d.keep(ctx, func(changed <-chan nats.Status) (bool, error) {
		s.mu.Lock()
		position := s.next
		s.mu.Unlock()
		err := s.session(ctx, changed)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.next > position, err
	}, s.rebuilt)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != done || err == nil {
		return // another run has begun, or nobody is left
	}
	s.running = false
	for _, m := range s.members {
		if m != nil {
			s.fail(m, err)
		}
	}
}

func (s *shared) rebuilt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m != nil {
			s.d.hooks.rebuilt(m.partition, cause)
		}
	}
}

// fail ends a member. The caller holds the lock.
func (s *shared) fail(m *member, err error) {
	m.err = err
	close(m.in)
	s.members[m.partition] = nil
}

// session makes a consumer at the lowest sequence that a member needs, and
// reads until it breaks or one joins that needs a lower.
func (s *shared) session(ctx context.Context, changed <-chan nats.Status) error {
	first, last, err := s.d.bounds(ctx)
	if err != nil {
		return err
	}
	from := s.begin(first, last)
	p, stop, err := open(ctx, s.d, "all", "", from)
	if err != nil {
		return err
	}
	defer stop()
	heard := newSilence(s.d.pull.silence)
	defer heard.stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	blocked, _ := s.flush()
	for {
		if err := p.ask(); err != nil {
			return err
		}
		in := p.msgs
		if blocked {
			in = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			return errReconnected
		case <-s.wake:
			var joined bool
			if blocked, joined = s.flush(); joined {
				return errJoined
			}
		case msg := <-in:
			heard.something()
			if blocked, err = s.take(p, msg); err != nil {
				return err
			}
		case <-look.C:
			if blocked {
				blocked = s.evict()
			}
		case <-heard.tick.C:
			if heard.tooLong(in != nil) {
				return errSilent
			}
		}
	}
}

// begin holds what the members need against what the stream has, and returns
// where to read from.
func (s *shared) begin(first, last uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	position := s.next
	s.next, s.rejoin = last+1, false
	for _, m := range s.members {
		if m == nil {
			continue
		}
		if m.began {
			m.next = max(m.next, position)
		}
		m.began = true
		if err := m.begin(first, last); err != nil {
			s.fail(m, err)
			continue
		}
		s.next = min(s.next, m.next)
	}
	return s.next
}

// take sorts a message and those that wait behind it to their members, and
// tells whether one of them has no room for more.
func (s *shared) take(p *puller, msg *nats.Msg) (blocked bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for {
		at, ok, err := p.accept(msg)
		if err != nil {
			return false, err
		}
		if ok {
			blocked = s.sort(at, msg, now)
		}
		if blocked {
			break
		}
		select {
		case msg = <-p.msgs:
			continue
		default:
		}
		break
	}
	return s.flushLocked(), nil
}

// sort hands one message to its member and tells whether that is full now.
func (s *shared) sort(at delivery, msg *nats.Msg, now time.Time) bool {
	s.next = at.stream + 1
	partition, _ := splitStored(msg.Subject)
	if partition < 0 || partition >= len(s.members) {
		return false
	}
	m := s.members[partition]
	if m == nil || !m.began { // one that just joined may need what comes before
		return false
	}
	m.fill(at, msg)
	m.filling.Read = now
	return full(m.filling) && !m.hand()
}

// flush hands over what the members have room for, and tells whether anybody
// joined meanwhile.
func (s *shared) flush() (blocked, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushLocked(), s.rejoin
}

func (s *shared) flushLocked() (blocked bool) {
	for _, m := range s.members {
		if m != nil && len(m.filling.Messages) > 0 && !m.hand() {
			blocked = blocked || full(m.filling)
		}
	}
	return blocked
}

// separate puts all members on their own.
func (s *shared) separate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m != nil {
			s.fail(m, errSeparated)
		}
	}
}

// unread is the first sequence that was not handed over.
func (m *member) unread() uint64 {
	if len(m.filling.Messages) > 0 {
		return m.filling.Messages[0].Seq
	}
	return m.next
}

// evict puts members that take nothing on their own, and tells whether one is
// left that has no room.
func (s *shared) evict() (blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m == nil || !full(m.filling) || m.hand() {
			continue
		}
		if m.stuck++; m.stuck >= stuckLooks {
			s.fail(m, errHeldUp)
			s.d.hooks.rebuilt(m.partition, errHeldUp)
			continue
		}
		blocked = true
	}
	return blocked
}

// hand passes on the batch that is being filled, if there is room for it.
func (m *member) hand() bool {
	select {
	case m.in <- m.filling:
		m.stuck = 0
		m.filling = m.batches.get()
		return true
	default:
		return false
	}
}

package live

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	stripes = 16
	// perStripe bounds how many devices are remembered while somebody
	// watches: about 262,000. Beyond it the one that has been still for
	// longest is forgotten; its next fix brings it back.
	perStripe = 1 << 14
)

// positions keeps the newest position of each device, in the order in which
// they changed, so that any number of clients can each take what has changed
// since they last looked, and a publish costs the same however many there are.
type positions struct {
	seed    maphash.Seed
	clock   atomic.Uint64 // rises with each change
	stripes [stripes]stripe
}

// stripe holds the devices of one hash value. Its lock is held for one put,
// or for one client's walk over what has changed in the stripe.
type stripe struct {
	mu     sync.Mutex
	byID   map[string]*place
	oldest *place // head of the list, in order of change
	newest *place
}

// place is a device's position, and the moment of its last change.
type place struct {
	position   Position
	changed    uint64
	prev, next *place
}

func (p *positions) init() {
	p.seed = maphash.MakeSeed()
	p.clear()
}

func (p *positions) now() uint64 { return p.clock.Load() }

func (p *positions) clear() {
	for i := range p.stripes {
		s := &p.stripes[i]
		s.mu.Lock()
		s.byID, s.oldest, s.newest = make(map[string]*place), nil, nil
		s.mu.Unlock()
	}
}

func (p *positions) put(at Position) {
	s := p.stripe(at.Device)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byID[at.Device]
	switch {
	case n != nil && n.position.TS > at.TS:
		return // a late one
	case n != nil:
		s.unlink(n)
	case len(s.byID) >= perStripe:
		n = s.oldest
		s.unlink(n)
		delete(s.byID, n.position.Device)
		s.byID[at.Device] = n
	default:
		n = new(place)
		s.byID[at.Device] = n
	}
	n.position = at
	n.changed = p.clock.Add(1)
	s.append(n)
}

// remove forgets a device.
func (p *positions) remove(device string) {
	s := p.stripe(device)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.byID[device]; n != nil {
		s.unlink(n)
		delete(s.byID, device)
	}
}

func (p *positions) stripe(device string) *stripe {
	return &p.stripes[maphash.String(p.seed, device)%stripes]
}

// since appends to dst what has changed after the moment seen, and returns
// the moment to ask from next time. What changes during the walk is in this
// answer, or in the next, or in both.
func (p *positions) since(seen uint64, dst []Position) ([]Position, uint64) {
	now := p.now()
	if now == seen {
		return dst, seen
	}
	for i := range p.stripes {
		s := &p.stripes[i]
		s.mu.Lock()
		for n := s.newest; n != nil && n.changed > seen; n = n.prev {
			dst = append(dst, n.position)
		}
		s.mu.Unlock()
	}
	return dst, now
}

func (s *stripe) append(n *place) {
	n.prev, n.next = s.newest, nil
	if s.newest != nil {
		s.newest.next = n
	} else {
		s.oldest = n
	}
	s.newest = n
}

func (s *stripe) unlink(n *place) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		s.oldest = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		s.newest = n.prev
	}
}

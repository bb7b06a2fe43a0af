package lease

import (
	"maps"
	"slices"
	"time"
)

// core decides: whether our own leases are good, who of the others is gone,
// and which partitions we take, run and give away. It is pure and synchronous:
// its owner passes the time, tells it what it has read and written, and does
// what it says.
type core struct {
	cfg  Timing
	self string
	home Home

	rev     uint64        // of our heartbeat; 0: we have none
	until   time.Duration // our leases are good before this
	leaving bool

	looked   time.Duration // when the last look that went well was begun
	peers    map[string]*peer
	register []string // as last seen
	stays    map[int]*stay
}

// peer is another replica, as seen.
type peer struct {
	Replica
	rev uint64
	// since is when we first knew of this revision.
	since time.Duration
	ended bool // its process is known to have ended
}

// phase is where a partition of ours is.
type phase uint8

const (
	running  phase = iota
	leaving        // it is being handed over
	finished       // nothing of it runs any more
)

type stay struct {
	phase  phase
	handed bool          // it was asked to end
	again  time.Duration // finished by itself: not to be run again before this
}

// seen is what a look has found.
type seen struct {
	replicas map[string]entry // by id
	register []string
}

type entry struct {
	Replica
	rev uint64
}

// plan is what is to be done next.
type plan struct {
	kill     []entry  // replace by a mark
	register []string // write; nil: leave it
	start    []int
	handOver []int
	lose     []int // the register gives them to somebody else
}

// restartPause is how long a partition that ended by itself is left alone.
const restartPause = time.Second

func newCore(cfg Timing, partitions int, home Home) *core {
	return &core{
		cfg: cfg, home: home, peers: map[string]*peer{}, stays: map[int]*stay{},
		register: make([]string, partitions), looked: -cfg.TTL,
	}
}

// joined begins a new life under a new id.
func (c *core) joined(id string) {
	c.self, c.rev, c.until = id, 0, 0
}

// renewed notes that a heartbeat that was sent at sent is stored.
func (c *core) renewed(sent time.Duration, rev uint64) {
	c.rev = rev
	c.until = max(c.until, sent+c.cfg.TTL-c.cfg.Margin)
}

// valid says whether our leases can be relied on.
func (c *core) valid(now time.Duration) bool { return c.rev != 0 && now < c.until }

// observe takes in a look that was begun at began and ended at now.
func (c *core) observe(began, now time.Duration, s seen) (joined, left []Replica) {
	// While we could not look, others could not be heard.
	deaf := began-c.looked > c.cfg.TTL/4
	c.looked = began
	for _, id := range s.register {
		if _, there := s.replicas[id]; !there && id != "" {
			// Somebody has meddled with its heartbeat. It may run all the same.
			s.replicas[id] = entry{Replica: Replica{ID: id}}
		}
	}
	for id, e := range s.replicas {
		if id == c.self {
			continue
		}
		p := c.peers[id]
		if p == nil {
			p = &peer{Replica: e.Replica, rev: e.rev, since: now}
			c.peers[id] = p
			if !e.Gone {
				joined = append(joined, e.Replica)
			}
		}
		if p.rev != e.rev || deaf {
			p.since = now
		}
		if e.Gone && !p.Gone {
			left = append(left, e.Replica)
		}
		p.Replica, p.rev = e.Replica, e.rev
		p.ended = c.home.outlives(e.Home)
	}
	for id, p := range c.peers {
		if _, there := s.replicas[id]; !there {
			if !p.Gone {
				left = append(left, p.Replica)
			}
			delete(c.peers, id)
		}
	}
	c.register = s.register
	return joined, left
}

// killable returns the peers that count as gone and have no mark yet: their
// heartbeat has been the same for the TTL, when the last look began.
func (c *core) killable() (list []entry) {
	for _, id := range slices.Sorted(maps.Keys(c.peers)) {
		p := c.peers[id]
		if !p.Gone && (p.ended || c.looked-p.since >= c.cfg.TTL) {
			list = append(list, entry{p.Replica, p.rev})
		}
	}
	return list
}

// killed notes that a peer is replaced by its mark.
func (c *core) killed(id string, rev uint64) {
	if p := c.peers[id]; p != nil {
		p.Gone, p.rev = true, rev
	}
}

// alive says whether a replica has its leases as far as we know.
func (c *core) alive(id string) bool {
	if id == c.self {
		return true
	}
	p := c.peers[id]
	return p != nil && !p.Gone
}

// obsolete returns the marks that nobody needs any more: no partition names
// them. The oldest replica clears them away.
func (c *core) obsolete() (revs []uint64) {
	if c.self != slices.Min(append(c.takers(), c.self)) {
		return nil
	}
	for id, p := range c.peers {
		if p.Gone && !slices.Contains(c.register, id) {
			revs = append(revs, p.rev)
		}
	}
	return revs
}

// takers are those who may have partitions.
func (c *core) takers() []string {
	var list []string
	for id, p := range c.peers {
		if !p.Gone && !p.Leaving {
			list = append(list, id)
		}
	}
	if !c.leaving {
		list = append(list, c.self)
	}
	return list
}

// decide says what to do. It is asked after every look.
func (c *core) decide(now time.Duration) plan {
	if !c.valid(now) {
		return plan{}
	}
	out := plan{kill: c.killable()}
	owners := slices.Clone(c.register)
	for p, owner := range owners {
		if owner != "" && !c.alive(owner) {
			owners[p] = ""
		}
	}
	target := share(owners, c.takers())
	next := slices.Clone(c.register)
	for p, owner := range owners {
		s := c.stays[p]
		switch {
		case owner == c.self && target[p] == c.self:
			if s == nil || s.phase == finished && now >= s.again {
				out.start = append(out.start, p)
			}
		case owner == c.self && (s == nil || s.phase == finished):
			next[p] = target[p]
		case owner == c.self:
			if s.phase == running {
				out.handOver = append(out.handOver, p)
			}
		case s != nil && s.phase != finished:
			out.lose = append(out.lose, p)
		case owner == "" && target[p] == c.self:
			next[p] = c.self
		}
	}
	if !slices.Equal(next, c.register) {
		out.register = next
	}
	return out
}

// wrote notes that our register is stored.
func (c *core) wrote(register []string) (released []int) {
	for p, owner := range register {
		if c.register[p] == c.self && owner != c.self {
			released = append(released, p)
			delete(c.stays, p)
		}
	}
	c.register = register
	return released
}

// started, asked and ended follow a partition of ours.
func (c *core) started(p int) { c.stays[p] = &stay{} }

func (c *core) asked(p int) {
	if s := c.stays[p]; s != nil && s.phase == running {
		s.phase, s.handed = leaving, true
	}
}

func (c *core) ended(now time.Duration, p int) {
	if s := c.stays[p]; s != nil {
		if !s.handed {
			s.again = now + restartPause
		}
		s.phase = finished
	}
}

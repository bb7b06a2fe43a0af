// Package lease divides the partitions among the replicas of a service, so
// that each is run by exactly one of them.
//
// What the replicas agree on lies in one bucket, <NAMESPACE>_LEASES, which
// `nats kv` can show:
//
//	register      which replica has which partition
//	replica.<id>  a replica's heartbeat
//	turn.<name>   whose turn it is to do what only one may do, see Take
//
// The lease of a partition is its entry in the register, and is good as long
// as the heartbeat of the replica named there is: so a replica renews all its
// leases with one message. Every write is conditional on what it replaces,
// which makes the stream's leader the only judge.
//
// No clock is compared with another. A replica counts its leases as ended a
// margin before the TTL has passed since it sent the last heartbeat that was
// confirmed. The others count it as gone when they have seen the same
// heartbeat for the whole TTL, and then replace it by a mark: after that a
// heartbeat that was under way is refused. The second always ends later than
// the first.
package lease

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config says which partitions are divided, and in whose name.
type Config struct {
	// Namespace begins the bucket's name, in capitals.
	Namespace string
	// Partitions is how many there are; all replicas say the same.
	Partitions int
	// Replicas of the bucket's stream; 0 means 1.
	Replicas int
	// Name and Admin say who and where we are, to people.
	Name, Admin string
	Timing
	// Home tells where this process runs; nil means [ThisHome].
	Home func() Home
	// Serve runs a partition as long as it is ours.
	Serve Serve
	Hooks Hooks
}

// Timing holds the durations. A zero field means its default.
type Timing struct {
	// TTL is how long a lease outlives its last renewal, 15 s: an election of
	// the bucket's stream takes 4 to 9 s, in which nothing can be renewed.
	TTL time.Duration
	// Margin is how long before its end we stop to rely on a lease: time for
	// calls that have begun to end. 2 s.
	Margin time.Duration
	// Renew is the time between two heartbeats, 2 s.
	Renew time.Duration
	// Look is the time between two looks at what the others do, 500 ms.
	Look time.Duration
	// Request bounds one request to the server, 2 s.
	Request time.Duration
	// HandOver bounds the graceful end of our partitions when we leave, 30 s.
	HandOver time.Duration
}

func (t Timing) withDefaults() Timing {
	t.TTL = cmp.Or(t.TTL, 15*time.Second)
	t.Margin = cmp.Or(t.Margin, 2*time.Second)
	t.Renew = cmp.Or(t.Renew, 2*time.Second)
	t.Look = cmp.Or(t.Look, 500*time.Millisecond)
	t.Request = cmp.Or(t.Request, 2*time.Second)
	t.HandOver = cmp.Or(t.HandOver, 30*time.Second)
	return t
}

func (t Timing) check() error {
	if t.Margin+2*t.Renew >= t.TTL {
		return fmt.Errorf("lease: a TTL of %v leaves no room for a second renewal after %v, with a margin of %v", t.TTL, t.Renew, t.Margin)
	}
	return nil
}

// Stay is one time for which a partition is ours.
type Stay struct {
	Partition int
	// HandOver is closed when another replica is to have the partition: what
	// runs ends in order.
	HandOver <-chan struct{}
	// Lost is closed when the lease has ended: what runs stops at once.
	Lost <-chan struct{}
}

// Serve runs a partition. It returns when nothing of it runs any more: after
// HandOver, after Lost, or because it can't go on; then it is called again
// after a pause, so long as the partition is ours.
type Serve func(s Stay) error

// Hooks tell what happens. Any of them may be nil. They must not block.
type Hooks struct {
	// Joined and Left tell of other replicas, Gone of one that said nothing
	// for the TTL, or whose process is known to have ended.
	Joined, Left, Gone func(Replica)
	// Gained, Released and Lost tell what becomes of partitions, of all that
	// it happens to at once.
	Gained, Released, Lost func(partitions []int)
	// Ended: Serve returned by itself.
	Ended func(partition int, err error)
	// Expired: no renewal came through in time. Killed: the others have
	// counted us as gone.
	Expired, Killed func()
	// Failed: the bucket did not answer well; it is asked again.
	Failed func(error)
}

// Replica is one of the processes of a service.
type Replica struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Admin   string `json:"admin,omitempty"`
	Home    Home   `json:"home,omitzero"`
	Leaving bool   `json:"leaving,omitempty"` // takes no partition any more
	Gone    bool   `json:"gone,omitempty"`    // the mark of one that has left, or counts as gone
}

// errRefused says that a conditional write came too late: what it was to
// replace has changed. Nothing was stored.
var errRefused = errors.New("changed by somebody else")

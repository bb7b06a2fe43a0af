package jetqueue

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// redrives gives each redrive of a trigger an id of its own for the server's
// deduplication: the plain one may still be known from when the trigger was
// first parked, and the redriven trigger would be swallowed. A repeated park
// of the same redrive keeps its id until it is known to be stored.
type redrives struct {
	mu    sync.Mutex        // guards the fields below
	open  map[string]string // trigger id -> message id of the redrive under way
	nonce string            // tells this process's ids from an earlier one's
	count uint64
}

func (r *redrives) msgID(trigger string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.open[trigger]; ok {
		return id
	}
	if r.open == nil {
		r.open, r.nonce = make(map[string]string), nats.NewInbox()[len(nats.InboxPrefix):]
	}
	r.count++
	id := trigger + ".redriven." + r.nonce + "." + strconv.FormatUint(r.count, 10)
	r.open[trigger] = id
	return id
}

// stored ends the redrive under way: the next one is another.
func (r *redrives) stored(trigger string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, trigger)
}

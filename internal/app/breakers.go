package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/internal/lease"
)

// fleetBreakers ties the breakers of the replicas together. What one says is
// news to the others, not a verdict: that it has tripped is told to people;
// that it has closed is a hint that the consumer is well.
type fleetBreakers struct {
	nc     *nats.Conn
	prefix string // of the subjects
	keeper *lease.Keeper
	log    *slog.Logger

	mu     sync.Mutex                      // guards others
	others map[string]map[string]otherView // by consumer and replica
}

// otherView is what another replica has said of its breaker.
type otherView struct {
	State string    `json:"state"`
	Text  string    `json:"text"`
	At    time.Time `json:"at"` // when it was heard
}

// news is what a replica says of its breaker.
type news struct {
	Replica string `json:"replica"` // its id
	Name    string `json:"name"`
	State   string `json:"state"`
	Text    string `json:"text"`
}

func newFleetBreakers(nc *nats.Conn, namespace string, k *lease.Keeper, log *slog.Logger) *fleetBreakers {
	return &fleetBreakers{
		nc: nc, prefix: namespace + ".breaker.", keeper: k, log: log,
		others: map[string]map[string]otherView{},
	}
}

// tell says what became of our breaker. Nobody depends on hearing it.
func (f *fleetBreakers) tell(consumer string, t breaker.Transition) {
	data, err := json.Marshal(news{f.keeper.View().Self, instance(), t.To.String(), t.Text})
	if err == nil {
		err = f.nc.Publish(f.prefix+consumer, data)
	}
	if err != nil {
		f.log.Debug("telling the other replicas of a breaker", "consumer", consumer, "err", err)
	}
}

// run listens to the others until ctx ends.
func (f *fleetBreakers) run(ctx context.Context, find func(string) (*member, bool)) error {
	sub, err := f.nc.Subscribe(f.prefix+"*", func(msg *nats.Msg) {
		var n news
		if json.Unmarshal(msg.Data, &n) != nil || n.Replica == f.keeper.View().Self {
			return
		}
		consumer := strings.TrimPrefix(msg.Subject, f.prefix)
		if m, ok := find(consumer); ok {
			f.heard(m, n)
		}
	})
	if err != nil {
		return fmt.Errorf("listening to the breakers of the other replicas: %w", err)
	}
	<-ctx.Done()
	// Its connection may be closed already, which is as good.
	_ = sub.Unsubscribe()
	return nil
}

func (f *fleetBreakers) heard(m *member, n news) {
	f.mu.Lock()
	if f.others[m.name] == nil {
		f.others[m.name] = map[string]otherView{}
	}
	f.others[m.name][n.Name] = otherView{n.State, n.Text, time.Now()}
	f.mu.Unlock()
	switch n.State {
	case breaker.Open.String():
		f.log.Info("another replica's breaker is open, a warning", "consumer", m.name, "replica", n.Name, "reason", n.Text)
	case breaker.Closed.String():
		m.outlet.Hint()
	}
}

// views is what the replicas that are there have last said.
func (f *fleetBreakers) views(there []lease.Replica) map[string]map[string]otherView {
	names := map[string]bool{}
	for _, r := range there {
		names[r.Name] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	views := map[string]map[string]otherView{}
	for consumer, others := range f.others {
		maps.DeleteFunc(others, func(name string, _ otherView) bool { return !names[name] })
		views[consumer] = maps.Clone(others)
	}
	return views
}

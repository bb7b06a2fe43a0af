package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// turnOf is what a key turn.<name> holds: whose turn it is.
type turnOf struct {
	Replica string `json:"replica"` // id, "" for nobody
}

const turnPrefix = "turn."

// Take takes the turn of that name: true if it is ours now, false if another
// replica has it. A turn outlives neither its replica nor its release. The
// error is the server's silence, or that we have no leases at the moment.
func (k *Keeper) Take(ctx context.Context, name string) (bool, error) {
	self := k.View()
	if self.Self == "" || !self.Valid {
		return false, errors.New("taking a turn: this replica has no leases at the moment")
	}
	holder, rev, err := k.bucket.turn(ctx, name)
	if err != nil {
		return false, err
	}
	if holder == self.Self {
		return true, nil
	}
	if holder != "" {
		// Not from what we have seen last: it may have joined since.
		e, there, err := k.bucket.replica(ctx, holder)
		if err != nil {
			return false, err
		}
		if there && !e.Gone {
			return false, nil
		}
	}
	_, err = k.bucket.write(ctx, turnPrefix+name, turnOf{self.Self}, rev)
	if errors.Is(err, errRefused) {
		return false, nil
	}
	return err == nil, err
}

// Release gives the turn back, if it is ours.
func (k *Keeper) Release(ctx context.Context, name string) error {
	holder, rev, err := k.bucket.turn(ctx, name)
	if err != nil || holder != k.View().Self {
		return err
	}
	_, err = k.bucket.write(ctx, turnPrefix+name, turnOf{}, rev)
	if errors.Is(err, errRefused) {
		return nil // then it was somebody else's
	}
	return err
}

// turn says whose turn it is; rev is 0 if it never was anybody's.
func (b *bucket) turn(ctx context.Context, name string) (holder string, rev uint64, err error) {
	msg, err := b.stream.GetLastMsgForSubject(ctx, b.prefix+turnPrefix+name)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("reading the turn %s: %w", name, err)
	}
	var t turnOf
	if err := json.Unmarshal(msg.Data, &t); err != nil {
		return "", 0, fmt.Errorf("reading the turn %s: %w", name, err)
	}
	return t.Replica, msg.Sequence, nil
}

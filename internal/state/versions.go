package state

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

var _ router.FenceVersions = (*Versions)(nil)

// digestHeader carries a stored fence's digest in hex, so that a start can
// compare without parsing.
const digestHeader = "Tripline-Digest"

// Versions keeps the last version of every fence that there is, or that a
// presence may still name. Its revision is the sequence of its message. It is
// safe for concurrent use.
type Versions struct {
	s *Store

	put sync.Mutex // held over Put and Sweep: one writer

	mu   sync.Mutex // guards byID and the entries
	byID map[string]*version
}

type version struct {
	revision uint64
	digest   string
	feature  []byte          // as stored; nil once fence is set
	fence    *geofence.Fence // nil until somebody asks
	// earlier stands in for versions that are not kept any more.
	earlier map[uint64]*geofence.Fence
	unnamed time.Time // when a Sweep first found it unnamed; zero: it was named
}

func loadVersions(ctx context.Context, s *Store) (*Versions, error) {
	v := &Versions{s: s, byID: make(map[string]*version)}
	prefix := v.prefix()
	err := s.scan(ctx, prefix+">", func(msg jetstream.Msg, seq uint64) error {
		id, err := untoken(msg.Subject()[len(prefix):])
		if err != nil {
			return fmt.Errorf("subject %s: %w", msg.Subject(), err)
		}
		v.byID[id] = &version{revision: seq, digest: msg.Headers().Get(digestHeader), feature: msg.Data()}
		return nil
	})
	return v, err
}

func (v *Versions) prefix() string { return v.s.prefix + "fence." }

// Version returns a version of a fence, or nil if none is stored. Only the
// last is kept; whoever asks for an earlier one gets the last's content under
// the earlier revision, so that it is not mistaken for the last and its
// devices are judged again.
func (v *Versions) Version(id string, revision uint64) *geofence.Fence {
	v.mu.Lock()
	defer v.mu.Unlock()
	ver := v.byID[id]
	if ver == nil {
		return nil
	}
	if ver.fence == nil {
		fences, err := geofence.ParseFences(ver.feature)
		if err != nil || len(fences) != 1 {
			// We wrote it, so a rule of validation has become stricter
			// since. Its devices leave it all the same, without properties.
			return nil
		}
		ver.fence, ver.feature = fences[0].WithRevision(ver.revision), nil
	}
	if revision == ver.revision {
		return ver.fence
	}
	f := ver.earlier[revision]
	if f == nil {
		if ver.earlier == nil {
			ver.earlier = make(map[uint64]*geofence.Fence)
		}
		f = ver.fence.WithRevision(revision)
		ver.earlier[revision] = f
	}
	return f
}

// Put stores the fences whose content differs from their last version, and
// returns all of them, in order, with their revisions. If it fails, some may
// be stored: a repeat stores the rest.
func (v *Versions) Put(ctx context.Context, fences []*geofence.Fence) ([]*geofence.Fence, error) {
	v.put.Lock()
	defer v.put.Unlock()
	out := make([]*geofence.Fence, len(fences))
	type change struct {
		i      int
		digest string
		ack    jetstream.PubAckFuture
	}
	var changes []change
	for i, f := range fences {
		sum := f.Digest()
		digest := hex.EncodeToString(sum[:])
		last, known := v.last(f.ID, digest)
		if known {
			out[i] = v.remember(f, last, digest)
			continue
		}
		ack, err := v.publish(f, last, digest)
		if err != nil {
			return nil, fmt.Errorf("store fence %q: %w", f.ID, err)
		}
		changes = append(changes, change{i, digest, ack})
	}
	for _, c := range changes {
		f := fences[c.i]
		revision, err := v.await(ctx, f.ID, c.digest, c.ack)
		if err != nil {
			return nil, fmt.Errorf("store fence %q: %w", f.ID, err)
		}
		out[c.i] = v.remember(f, revision, c.digest)
	}
	return out, nil
}

// last returns the revision of a fence's last version, 0 if there is none,
// and whether its content is the same.
func (v *Versions) last(id, digest string) (uint64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ver := v.byID[id]
	if ver == nil {
		return 0, false
	}
	return ver.revision, ver.digest == digest
}

// publish stores a version, unless somebody else was faster.
func (v *Versions) publish(f *geofence.Fence, last uint64, digest string) (jetstream.PubAckFuture, error) {
	feature, err := f.MarshalFeature()
	if err != nil {
		return nil, err
	}
	subject := v.prefix() + token(f.ID)
	msg := &nats.Msg{Subject: subject, Data: feature, Header: nats.Header{}}
	msg.Header.Set(digestHeader, digest)
	return v.s.js.PublishMsgAsync(msg,
		jetstream.WithExpectLastSequenceForSubject(last, subject),
		jetstream.WithStallWait(10*time.Second))
}

// await returns the revision of a version under way. Another replica with the
// same fences may have stored the same content first: then its revision is
// ours too, and both make the same trigger ids.
func (v *Versions) await(ctx context.Context, id, digest string, ack jetstream.PubAckFuture) (uint64, error) {
	var err error
	select {
	case a := <-ack.Ok():
		return a.Sequence, nil
	case err = <-ack.Err():
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if !wrongSequence(err) {
		return 0, err
	}
	msg, err := v.s.stream.GetLastMsgForSubject(ctx, v.prefix()+token(id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		v.forget(id)
		return 0, errors.New("changed by somebody else at the same time")
	}
	if err != nil {
		return 0, err
	}
	stored := msg.Header.Get(digestHeader)
	if stored != digest {
		v.adopt(id, &version{revision: msg.Sequence, digest: stored, feature: msg.Data})
		return 0, errors.New("changed by somebody else at the same time")
	}
	return msg.Sequence, nil
}

// remember makes f the last version of its fence.
func (v *Versions) remember(f *geofence.Fence, revision uint64, digest string) *geofence.Fence {
	if f.Revision != revision {
		f = f.WithRevision(revision)
	}
	v.adopt(f.ID, &version{revision: revision, digest: digest, fence: f})
	return f
}

func (v *Versions) adopt(id string, ver *version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byID[id] = ver
}

func (v *Versions) forget(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byID, id)
}

// Sweep removes versions that nothing names: not the index, not a presence.
// named tells by fence id. What partitions know of is newer than what is
// saved, so a version goes only when two sweeps, at least apart from each
// other and with none in between that found it named, agree. apart should
// be a few times the partitions' FlushAfter. It returns how many went.
func (v *Versions) Sweep(ctx context.Context, named func(id string) bool, apart time.Duration) (int, error) {
	v.put.Lock()
	defer v.put.Unlock()
	now := time.Now()
	type gone struct {
		id       string
		revision uint64
	}
	var remove []gone
	v.mu.Lock()
	for id, ver := range v.byID {
		switch {
		case named(id):
			ver.unnamed = time.Time{}
		case ver.unnamed.IsZero():
			ver.unnamed = now
		case now.Sub(ver.unnamed) >= apart:
			remove = append(remove, gone{id, ver.revision})
		}
	}
	v.mu.Unlock()
	for i, g := range remove {
		if err := v.s.deleteAll(ctx, []uint64{g.revision}); err != nil {
			return i, fmt.Errorf("remove the last version of fence %q: %w", g.id, err)
		}
		v.forget(g.id)
	}
	return len(remove), nil
}

package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// step renews our leases if that is due, and takes a turn.
func (k *Keeper) step(ctx context.Context) {
	if k.now()-k.sent < k.cfg.Renew || k.renew(ctx) {
		k.turn(ctx)
	}
}

// renew writes our heartbeat.
func (k *Keeper) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Request)
	defer cancel()
	sent, before := k.now(), time.Now()
	rev, err := k.bucket.writeReplica(ctx, k.me(), k.core.rev)
	switch {
	case err == nil:
		k.core.renewed(sent, rev)
		k.sent = sent
		good := k.cfg.TTL - k.cfg.Margin
		k.setDeadline(&deadline{before.Add(good), before.Round(0).Add(good)})
		return true
	case errors.Is(err, errRefused):
		k.heartbeatRefused(ctx)
	default:
		k.failed(err)
	}
	return false
}

func (k *Keeper) setDeadline(d *deadline) {
	k.deadline.Store(d)
	select {
	case k.renewed <- struct{}{}:
	default:
	}
}

func (k *Keeper) me() Replica {
	return Replica{
		ID: k.core.self, Name: k.cfg.Name, Admin: k.cfg.Admin, Home: k.core.home, Leaving: k.core.leaving,
	}
}

// heartbeatRefused finds out whether the heartbeat that stands there is ours,
// its answer lost, or the mark that says that we count as gone.
func (k *Keeper) heartbeatRefused(ctx context.Context) {
	e, there, err := k.bucket.replica(ctx, k.core.self)
	switch {
	case err != nil:
		k.failed(err)
	case there && !e.Gone:
		k.core.rev = e.rev // the next one is sent upon this
	default:
		k.setDeadline(&deadline{})
		k.loseAll()
		if k.cfg.Hooks.Killed != nil {
			k.cfg.Hooks.Killed()
		}
		k.join()
	}
}

// turn looks, decides, and does what that says.
func (k *Keeper) turn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*k.cfg.Request)
	defer cancel()
	began := k.now()
	s, rev, err := k.bucket.look(ctx)
	if err != nil {
		k.failed(err)
		return
	}
	k.registerRev = rev
	joined, left := k.core.observe(began, k.now(), s)
	k.publish() // before anybody is told
	tellEach(k.cfg.Hooks.Joined, joined)
	tellEach(k.cfg.Hooks.Left, left)
	if k.Valid() {
		for _, e := range k.core.killable() {
			k.kill(ctx, e)
		}
		k.carryOut(ctx, k.core.decide(k.now()))
		k.clear(ctx)
	}
	k.publish()
}

func (k *Keeper) carryOut(ctx context.Context, p plan) {
	k.lose(p.lose)
	for _, partition := range p.handOver {
		k.handOver(partition)
	}
	if p.register != nil && k.write(ctx, p.register) {
		p = k.core.decide(k.now()) // what has become ours
	}
	k.start(p.start)
}

// kill puts a mark in the place of a heartbeat. From then on whoever sent it
// has no leases, and is told so at its next one.
func (k *Keeper) kill(ctx context.Context, e entry) {
	mark := e.Replica
	mark.Gone = true
	rev, err := k.bucket.writeReplica(ctx, mark, e.rev)
	switch {
	case err == nil:
		k.core.killed(e.ID, rev)
		tellEach(k.cfg.Hooks.Gone, []Replica{e.Replica})
	case !errors.Is(err, errRefused): // else it lives, or somebody was faster
		k.failed(err)
	}
}

// write stores the register; false if it has changed meanwhile, or may have.
func (k *Keeper) write(ctx context.Context, register []string) bool {
	rev, err := k.bucket.writeRegister(ctx, register, k.registerRev)
	if err != nil {
		if !errors.Is(err, errRefused) {
			k.failed(err)
		}
		return false
	}
	k.registerRev = rev
	tell(k.cfg.Hooks.Released, k.core.wrote(register))
	return true
}

// clear removes marks that have done their work.
func (k *Keeper) clear(ctx context.Context) {
	for _, rev := range k.core.obsolete() {
		if err := k.bucket.remove(ctx, rev); err != nil {
			k.failed(fmt.Errorf("clearing away the mark of a replica that is gone: %w", err))
		}
	}
}

// leave puts a mark in the place of our own heartbeat: nobody waits for us.
func (k *Keeper) leave(ctx context.Context) {
	k.setDeadline(&deadline{})
	if k.core.rev == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Request)
	defer cancel()
	mark := k.me()
	mark.Gone = true
	_, err := k.bucket.writeReplica(ctx, mark, k.core.rev)
	if err != nil && !errors.Is(err, errRefused) {
		k.failed(fmt.Errorf("leaving: %w; the others take over when our leases have ended", err))
	}
}

func (k *Keeper) publish() {
	v := View{Self: k.core.self, Owners: slices.Clone(k.core.register), Replicas: []Replica{k.me()}}
	for _, p := range k.core.peers {
		if !p.Gone {
			v.Replicas = append(v.Replicas, p.Replica)
		}
	}
	slices.SortFunc(v.Replicas, func(a, b Replica) int { return strings.Compare(a.ID, b.ID) })
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view = v
}

func (k *Keeper) failed(err error) {
	if k.cfg.Hooks.Failed != nil {
		k.cfg.Hooks.Failed(err)
	}
}

func tellEach(hook func(Replica), list []Replica) {
	if hook != nil {
		for _, r := range list {
			hook(r)
		}
	}
}

// tell tells of partitions, if there are any.
func tell(hook func([]int), partitions []int) {
	if hook != nil && len(partitions) > 0 {
		hook(partitions)
	}
}

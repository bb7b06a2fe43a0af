package lease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestShareIsEvenAndMovesLittle(t *testing.T) {
	replicas := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint("r", i))
		}
		return list
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		partitions, before, after := 1+rng.IntN(64), rng.IntN(8), 1+rng.IntN(8)
		owners := share(make([]string, partitions), replicas(before))
		target := share(owners, replicas(after))
		counts := map[string]int{}
		moved := 0
		for p, owner := range target {
			counts[owner]++
			if owner != owners[p] {
				moved++
			}
		}
		for _, n := range counts {
			if n < partitions/after || n > (partitions+after-1)/after {
				t.Fatalf("%d partitions, %d replicas: %v", partitions, after, counts)
			}
		}
		// What newcomers get, or what those that left had, has to move;
		// besides, what can't be divided may change hands.
		least := 0
		for _, owner := range owners {
			if !slices.Contains(replicas(after), owner) {
				least++
			}
		}
		if after > before {
			least = partitions - before*(partitions/after) - min(partitions%after, before)
			if before == 0 {
				least = partitions
			}
		}
		if moved > least+after {
			t.Fatalf("%d partitions, %d to %d replicas: %d moved, %d had to", partitions, before, after, moved, least)
		}
		if again := share(target, replicas(after)); !slices.Equal(again, target) {
			t.Fatalf("not at rest: %v then %v", target, again)
		}
	}
}

// world is a bucket and replicas in virtual time: each step something happens
// to one of them.
type world struct {
	t        *testing.T
	now      time.Duration
	rev      uint64
	joins    int
	replicas map[string]entry
	register []string
	regRev   uint64
	cores    []*actor
	ran      map[int]*actor // who runs a partition
}

// actor drives a core as a Keeper does.
type actor struct {
	w       *world
	core    *core
	name    string
	stopped bool                  // does nothing any more, as a process that stands still
	cut     bool                  // reaches nothing
	ending  map[int]time.Duration // hand-overs that take until then
	nextHB  time.Duration
	regRev  uint64
}

var slow = Timing{}.withDefaults()

func newWorld(t *testing.T, actors, partitions int) *world {
	w := &world{t: t, replicas: map[string]entry{}, register: make([]string, partitions), ran: map[int]*actor{}}
	for i := range actors {
		a := &actor{w: w, name: fmt.Sprint("r", i), ending: map[int]time.Duration{}}
		a.core = newCore(slow, partitions, Home{})
		a.join()
		w.cores = append(w.cores, a)
	}
	return w
}

func (a *actor) join() {
	a.w.joins++ // ids rise with the time of joining
	a.core.joined(fmt.Sprintf("%03d-%s", a.w.joins, a.name))
}

// write is a conditional write of a heartbeat.
func (w *world) write(r Replica, rev uint64) (uint64, bool) {
	if w.replicas[r.ID].rev != rev {
		return 0, false
	}
	w.rev++
	w.replicas[r.ID] = entry{r, w.rev}
	return w.rev, true
}

// turn is what a Keeper does at each look.
func (a *actor) turn() {
	w := a.w
	if a.stopped {
		return
	}
	if !a.core.valid(w.now) {
		a.drop()
	}
	for p, until := range a.ending {
		if w.now >= until {
			delete(a.ending, p)
			a.stop(p)
			a.core.ended(w.now, p)
		}
	}
	if a.cut {
		return
	}
	if w.now >= a.nextHB {
		rev, ok := w.write(Replica{ID: a.core.self, Leaving: a.core.leaving}, a.core.rev)
		if !ok {
			a.drop()
			a.join()
			return
		}
		a.core.renewed(w.now, rev)
		a.nextHB = w.now + slow.Renew
	}
	a.core.observe(w.now, w.now, seen{replicas: maps.Clone(w.replicas), register: slices.Clone(w.register)})
	a.regRev = w.regRev
	for _, e := range a.core.killable() {
		mark := e.Replica
		mark.Gone = true
		if rev, ok := w.write(mark, e.rev); ok {
			a.core.killed(e.ID, rev)
		}
	}
	plan := a.core.decide(w.now)
	for _, p := range plan.lose {
		a.stop(p)
		a.core.ended(w.now, p)
	}
	for _, p := range plan.handOver {
		a.core.asked(p)
		a.ending[p] = w.now + 300*time.Millisecond
	}
	if plan.register != nil && a.regRev == w.regRev {
		w.regRev++
		w.register = plan.register
		a.core.wrote(plan.register)
		plan = a.core.decide(w.now)
	}
	for _, p := range plan.start {
		a.core.started(p)
		a.run(p)
	}
}

func (a *actor) run(p int) {
	if by := a.w.ran[p]; by != nil && by.core.valid(a.w.now) {
		a.w.t.Fatalf("%v: %s runs partition %d, and so does %s", a.w.now, a.name, p, by.name)
	}
	a.w.ran[p] = a
}

func (a *actor) stop(p int) {
	if a.w.ran[p] == a {
		delete(a.w.ran, p)
	}
}

// drop stops everything at once.
func (a *actor) drop() {
	for p := range a.w.register {
		if s := a.core.stays[p]; s != nil && s.phase != finished {
			a.stop(p)
			delete(a.ending, p)
			a.core.ended(a.w.now, p)
		}
	}
}

func (w *world) pass(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 100 * time.Millisecond {
		for i, a := range w.cores {
			if (int(w.now/(100*time.Millisecond))+i)%5 == 0 { // a look every 500 ms
				a.turn()
			}
		}
	}
}

// count says how many partitions each actor runs, with leases that are good.
func (w *world) count() map[string]int {
	n := map[string]int{}
	for _, a := range w.ran {
		if a.core.valid(w.now) && !a.stopped {
			n[a.name]++
		}
	}
	return n
}

func (w *world) want(n map[string]int) {
	w.t.Helper()
	if got := w.count(); !maps.Equal(got, n) {
		w.t.Fatalf("%v: they run %v, want %v", w.now, got, n)
	}
}

func TestThreeReplicasAndAThatStandsStill(t *testing.T) {
	w := newWorld(t, 3, 16)
	w.pass(5 * time.Second)
	w.want(map[string]int{"r0": 6, "r1": 5, "r2": 5})

	w.cores[0].stopped = true
	w.pass(slow.TTL - slow.Margin)
	w.want(map[string]int{"r1": 5, "r2": 5}) // its leases have just ended
	w.pass(slow.Margin + 2*time.Second)
	w.want(map[string]int{"r1": 8, "r2": 8})

	w.cores[0].stopped = false // finds its leases ended, and itself counted as gone
	w.pass(5 * time.Second)
	w.want(map[string]int{"r0": 5, "r1": 6, "r2": 5})
}

func TestTheBucketIsAwayForAWhile(t *testing.T) {
	w := newWorld(t, 3, 16)
	w.pass(5 * time.Second)
	before := slices.Clone(w.register)
	cut := func(is bool) {
		for _, a := range w.cores {
			a.cut = is
		}
	}
	cut(true)
	w.pass(10 * time.Second) // as an election
	w.want(map[string]int{"r0": 6, "r1": 5, "r2": 5})
	cut(false)
	w.pass(time.Second)
	cut(true)
	w.pass(time.Minute)
	w.want(map[string]int{}) // everybody has stopped by its own clock
	cut(false)
	w.pass(3 * time.Second)
	w.want(map[string]int{"r0": 6, "r1": 5, "r2": 5})
	if !slices.Equal(w.register, before) {
		t.Errorf("nobody was counted as gone, and yet %v became %v", before, w.register)
	}
}

func TestLeavingInOrder(t *testing.T) {
	w := newWorld(t, 2, 8)
	w.pass(5 * time.Second)
	w.cores[1].core.leaving = true
	w.pass(3 * time.Second)
	w.want(map[string]int{"r0": 8})
	if slices.Contains(w.register, w.cores[1].core.self) {
		t.Errorf("it is still in the register: %v", w.register)
	}
}

// Whatever happens, no two replicas with good leases run the same partition,
// and once nothing happens any more, everything runs, evenly.
func TestNeverTwoAtOnce(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 2+rng.IntN(4), 1+rng.IntN(24))
		for range 60 {
			a := w.cores[rng.IntN(len(w.cores))]
			switch rng.IntN(4) {
			case 0:
				a.stopped = !a.stopped
			case 1:
				a.cut = !a.cut
			case 2: // crashes, and another process comes
				a.drop()
				a.core = newCore(slow, len(w.register), Home{})
				a.ending, a.nextHB = map[int]time.Duration{}, 0
				a.join()
			}
			w.pass(time.Duration(rng.IntN(int(8 * time.Second))))
		}
		for _, a := range w.cores {
			a.stopped, a.cut = false, false
		}
		w.pass(slow.TTL + 10*time.Second)
		sum := 0
		for name, n := range w.count() {
			sum += n
			if low := len(w.register) / len(w.cores); n < low || n > low+1 {
				t.Errorf("seed %d: %s runs %d of %d", seed, name, n, len(w.register))
			}
		}
		if sum != len(w.register) {
			t.Errorf("seed %d: %d of %d run", seed, sum, len(w.register))
		}
	}
}

// A heartbeat that somebody has removed does not free what its replica runs
// before its leases have ended.
func TestAMissingHeartbeatIsNoEnd(t *testing.T) {
	w := newWorld(t, 2, 4)
	w.pass(5 * time.Second)
	gone := w.cores[0]
	gone.cut = true
	delete(w.replicas, gone.core.self)
	w.pass(slow.TTL - slow.Margin - slow.Renew - time.Second)
	w.want(map[string]int{"r0": 2, "r1": 2})
	w.pass(slow.TTL)
	w.want(map[string]int{"r1": 4})
}

func TestAProcessThatHasEndedHereNeedsNoWait(t *testing.T) {
	c := newCore(slow, 2, Home{Host: "here", PID: 1})
	c.joined("b")
	c.renewed(0, 5)
	c.observe(0, 0, seen{
		replicas: map[string]entry{
			"a": {Replica{ID: "a", Home: Home{Host: "here", PID: 1 << 30}}, 3}, // no such process
			"c": {Replica{ID: "c", Home: Home{Host: "there", PID: 1 << 30}}, 4},
		},
		register: []string{"a", "c"},
	})
	list := c.killable()
	if len(list) != 1 || list[0].ID != "a" {
		t.Errorf("killable: %+v, want only a", list)
	}
}

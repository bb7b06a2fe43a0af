package router_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// tape is a Source over messages in memory.
type tape struct {
	mu       sync.Mutex
	messages []router.Message
	grown    chan struct{} // closed when messages grows
	answers  map[string]router.Answer
	reads    []uint64 // the from of every Read
	ticks    []string // nonces
	deaf     bool     // Read gives nothing until it is restarted
	tick     func(nonce string) error
	most     int // messages per batch; 0 means 3
}

func newTape(messages ...router.Message) *tape {
	return &tape{messages: messages, grown: make(chan struct{}), answers: map[string]router.Answer{}}
}

func (s *tape) add(messages ...router.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, messages...)
	close(s.grown)
	s.grown = make(chan struct{})
}

// begun returns where each Read began.
func (s *tape) begun() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reads)
}

// ticked counts the ticks asked for.
func (s *tape) ticked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ticks)
}

func (s *tape) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		return 0
	}
	return s.messages[len(s.messages)-1].Seq
}

func (s *tape) Read(ctx context.Context, _ int, from uint64, out chan<- *router.Batch) error {
	s.mu.Lock()
	s.reads = append(s.reads, from)
	deaf := s.deaf
	s.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return nil
	}
	for {
		s.mu.Lock()
		i, _ := slices.BinarySearchFunc(s.messages, from, func(m router.Message, seq uint64) int {
			return int(int64(m.Seq) - int64(seq))
		})
		n := min(len(s.messages)-i, max(s.most, 3))
		batch := slices.Clone(s.messages[i : i+n])
		grown := s.grown
		s.mu.Unlock()
		if n == 0 {
			select {
			case <-grown:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		from = batch[n-1].Seq + 1
		released := false
		b := &router.Batch{Messages: batch, Read: time.Now()}
		b.Release = func() {
			if released {
				panic("batch released twice")
			}
			released = true
			clear(batch) // whoever kept something of it will notice
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *tape) Tick(_ context.Context, _ int, nonce string) error {
	s.mu.Lock()
	s.ticks = append(s.ticks, nonce)
	tick := s.tick
	s.mu.Unlock()
	if tick == nil {
		return errors.New("this tape stores no ticks")
	}
	return tick(nonce)
}

func (s *tape) Answer(reply string, a router.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[reply] = a
}

func (s *tape) answer(reply string) (router.Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.answers[reply]
	return a, ok
}

// vault is what a store keeps; claims of it are stores of their own.
type vault struct {
	mu    sync.Mutex
	epoch int
	saved router.Saved
	steps int
}

func newVault() *vault { return &vault{saved: router.Saved{Presences: map[string][]byte{}}} }

func (v *vault) get() router.Saved {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.saved
	s.Presences = maps.Clone(s.Presences)
	return s
}

// apply stores what of a step is told.
func (v *vault) apply(epoch int, p router.Progress, presences, progress bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if epoch != v.epoch {
		return router.ErrFenced
	}
	v.steps++
	if presences {
		for _, d := range p.Presences {
			if d.Encoded == nil {
				delete(v.saved.Presences, d.Device)
			} else {
				v.saved.Presences[d.Device] = slices.Clone(d.Encoded)
			}
		}
	}
	if progress {
		v.saved.Offset, v.saved.ReplayFrom, v.saved.Clock = p.Offset, p.ReplayFrom, p.Clock
	}
	return nil
}

// owner is a Store over a vault. fate decides what becomes of a commit; nil
// is the good one.
type owner struct {
	v     *vault
	epoch atomic.Int64
	fate  func() fate
	away  atomic.Int64 // claims that get no answer
}

type fate int

const (
	stored      fate = iota
	answerLost       // applied, and an error
	notStored        // not applied, and an error
	halfStored       // a long flush that broke off: presences without progress, and an error
	fateChoices = 4
)

var errFate = errors.New("no answer")

func (o *owner) Claim(context.Context, int) (router.Saved, error) {
	o.v.mu.Lock()
	o.v.epoch++
	o.epoch.Store(int64(o.v.epoch))
	o.v.mu.Unlock()
	if o.away.Add(-1) >= 0 {
		return router.Saved{}, errFate
	}
	return o.v.get(), nil
}

func (o *owner) Commit(_ context.Context, _ int, p router.Progress) error {
	f := stored
	if o.fate != nil {
		f = o.fate()
	}
	if f == notStored {
		return errFate
	}
	if err := o.v.apply(int(o.epoch.Load()), p, true, f != halfStored); err != nil {
		return err
	}
	if f != stored {
		return errFate
	}
	return nil
}

// inbox is an Outlet that keeps what it is offered, and settles it at once,
// or when the test says so.
type inbox struct {
	mu     sync.Mutex
	got    []router.Trigger
	held   []func()
	hold   bool
	block  chan struct{} // Offer waits for it, if it is set
	offers chan struct{} // gets one per offer, if it is set
}

func (o *inbox) Offer(ctx context.Context, t router.Trigger, settled func()) {
	o.mu.Lock()
	o.got = append(o.got, t)
	block, hold := o.block, o.hold
	if hold {
		o.held = append(o.held, settled)
	}
	o.mu.Unlock()
	if o.offers != nil {
		o.offers <- struct{}{}
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return
		}
	}
	if !hold {
		settled()
	}
}

func (o *inbox) triggers() []router.Trigger {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.got)
}

// settle settles the i-th held trigger.
func (o *inbox) settle(i int) {
	o.mu.Lock()
	f := o.held[i]
	o.mu.Unlock()
	f()
}

// words tells triggers in short: "a enter depot".
func words(triggers []router.Trigger) []string {
	var out []string
	for _, tr := range triggers {
		out = append(out, fmt.Sprint(tr.Device, " ", tr.Kind.String(), " ", tr.Fence))
	}
	return out
}

// consumers makes the shared slice.
func consumers(list ...router.Consumer) *atomic.Pointer[[]router.Consumer] {
	p := new(atomic.Pointer[[]router.Consumer])
	p.Store(&list)
	return p
}

// The places of the tests: circles of 1 km around points of the equator.
const meters = 1.0 / 111_195 // degrees

func circles(t testing.TB, names ...string) []*geofence.Fence {
	t.Helper()
	var all []*geofence.Fence
	for i, name := range names {
		all = append(all, circle(t, name, float64(i)*10_000, ""))
	}
	return all
}

// circle is a fence of 1 km around the point that many metres east of 0, 0.
func circle(t testing.TB, name string, east float64, props string) *geofence.Fence {
	t.Helper()
	fences, err := geofence.ParseFences(fmt.Appendf(nil,
		`{"type":"Feature","id":%q,"properties":{"radius_m":1000%s},"geometry":{"type":"Point","coordinates":[%v,0]}}`,
		name, props, east*meters))
	if err != nil {
		t.Fatal(err)
	}
	return fences[0]
}

func index(t testing.TB, fences ...*geofence.Fence) *geofence.Index {
	t.Helper()
	ix, err := geofence.NewIndex(fences...)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// at is a message with a fix that many metres east, stored when it happened.
func at(seq uint64, device string, ts int64, east float64) router.Message {
	return router.Message{
		Kind: router.FixMessage, Seq: seq, Stored: ts,
		Fix: geofence.Fix{Device: device, Lat: 0, Lon: east * meters, TS: ts, Stored: ts, Seq: seq},
	}
}

func tick(seq uint64, stored int64) router.Message {
	return router.Message{Kind: router.TickMessage, Seq: seq, Stored: stored}
}

// versions is a FenceVersions over a map. As in a real one only the last
// version is there; it stands in for earlier ones.
type versions map[string]*geofence.Fence

func (v versions) Version(id string, revision uint64) *geofence.Fence {
	f := v[id]
	if f == nil || f.Revision == revision {
		return f
	}
	return f.WithRevision(revision)
}

// fakeSeed makes the random runs repeatable.
func fakeSeed(n int) *rand.Rand { return rand.New(rand.NewPCG(uint64(n), 17)) }

package fallback_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/fallback/queuetest"
	"github.com/tripline/tripline/router"
)

// stress is several partitions that offer at once, to a consumer and a queue
// in random weather, over several lives of the process.
type stress struct {
	*rig
	faulty  *queuetest.Faulty
	seed    uint64
	pending [4][]*pendingTrigger // by partition; only its goroutine touches it
	made    map[string]int       // triggers by device
}

type pendingTrigger struct {
	router.Trigger
	mu      sync.Mutex // guards settled
	settled bool
}

// partition offers what is not settled, in order, and then new triggers until
// ctx ends.
func (s *stress) partition(ctx context.Context, o *fallback.Outlet, p int, devices []string, n int) {
	r := rand.New(rand.NewPCG(s.seed, uint64(p)))
	offer := func(t *pendingTrigger) {
		o.Offer(ctx, t.Trigger, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.settled = true
		})
	}
	var left []*pendingTrigger
	for _, t := range s.pending[p] {
		t.mu.Lock()
		if !t.settled {
			left = append(left, t)
		}
		t.mu.Unlock()
	}
	s.pending[p] = left
	for _, t := range left {
		offer(t)
	}
	for range n {
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		device := devices[r.IntN(len(devices))]
		s.made[device]++
		t := &pendingTrigger{Trigger: trigger(device, s.made[device])}
		s.mu.Unlock()
		t.Priority = router.Priority(r.IntN(3))
		s.pending[p] = append(s.pending[p], t)
		offer(t)
		time.Sleep(time.Duration(r.IntN(12)) * time.Millisecond)
	}
}

// weather changes how the consumer and the queue behave, until ctx ends.
func (s *stress) weather(ctx context.Context) {
	r := rand.New(rand.NewPCG(s.seed, 99))
	faults := []queuetest.Fault{"", queuetest.NotApplied, queuetest.AnswerLost}
	for ctx.Err() == nil {
		slow := []time.Duration{2, 5, 30, 80, 500}[r.IntN(5)] * time.Millisecond
		fail := []int{0, 0, 10, 100}[r.IntN(4)]
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(r.Uint64(), 1))
		s.consumer.set(func(int, router.Trigger) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			took := time.Duration(dice.Int64N(int64(slow)))
			if dice.IntN(100) < fail {
				return took, errSick
			}
			return took, nil
		})
		for _, step := range queuetest.Steps() {
			s.faulty.FailAlways(step, faults[max(0, r.IntN(9)-6)])
		}
		select {
		case <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	s.consumer.set(nil)
	for _, step := range queuetest.Steps() {
		s.faulty.FailAlways(step, "")
	}
}

// life runs the outlet for a while and ends it, in good order or not.
func (s *stress) life(t *testing.T, last bool) {
	s.start()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for p := range 4 {
		var devices []string
		for i := 0; len(devices) < 5; i++ {
			if d := fmt.Sprint("dev", i); trigger(d, 0).Partition == p {
				devices = append(devices, d)
			}
		}
		wg.Go(func() { s.partition(ctx, s.outlet, p, devices, 250) })
	}
	over, calm := context.WithCancel(t.Context())
	wg.Go(func() { s.weather(over) })
	time.Sleep(5 * time.Second)
	if last {
		calm()
		wg.Wait()
		cancel()
		s.drained(3 * time.Minute)
		return
	}
	if s.seed%2 == 0 { // fenced: all at once
		for p := range 4 {
			ended, end := context.WithCancel(t.Context())
			end()
			_ = s.outlet.Disown(ended, p)
		}
	}
	cancel()
	_ = s.stop() // in bad weather it may give up: what is left comes again
	calm()
	wg.Wait()
	s.cancel = nil
}

func TestR2_OrderHoldsUnderStressOverSeveralLives(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			faulty := queuetest.NewFaulty(r.mem)
			r.queue = faulty
			r.breaker = breaker.Config{Max: 3 * time.Second}
			r.cfg = fallback.Config{Concurrency: 1 + int(seed%5), Lane: 20, MaxWaiting: 20_000, MaxAttempts: 1000}
			s := &stress{rig: r, faulty: faulty, seed: seed, made: map[string]int{}}
			for i := range 3 {
				s.life(t, i == 2)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			s.checkOrder()
			got := map[string]bool{}
			for _, id := range s.consumer.ids() {
				got[id] = true
			}
			lost := 0
			for device, n := range s.made {
				for i := range n {
					if !got[fmt.Sprintf("%s/%d", device, i+1)] {
						lost++
					}
				}
			}
			if lost > 0 || len(got) < 1000 {
				t.Errorf("seed %d: %d lost of %d", seed, lost, len(got)+lost)
			}
		})
	}
}

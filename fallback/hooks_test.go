package fallback_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// Each call is told with all that a metric or the live page wants of it.
func TestHooksTellEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []fallback.Delivery
		var probes []breaker.Verdict
		var parkedFor []time.Duration
		hooks := fallback.Hooks{
			Delivered: func(d fallback.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				d.Trigger = &router.Trigger{ID: d.Trigger.ID} // only valid during the call
				told = append(told, d)
			},
			Probed:   func(v breaker.Verdict) { mu.Lock(); defer mu.Unlock(); probes = append(probes, v) },
			Replayed: func(d time.Duration) { mu.Lock(); defer mu.Unlock(); parkedFor = append(parkedFor, d) },
		}
		c := &consumer{}
		c.set(func(n int, _ router.Trigger) (time.Duration, error) {
			if n == 1 {
				return time.Hour, nil
			}
			return 7 * time.Millisecond, nil
		})
		health := healthFunc(func(context.Context) error { return nil })
		o := fallback.New(c, breaker.New(breaker.Config{}), fallback.NewMemQueue(0, 0),
			fallback.WithHooks(hooks), fallback.WithHealth(health))
		if o.Queue() == nil || o.Breaker() == nil {
			t.Error("the parts are gone")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		offer := func(device string) {
			tr := trigger(device, 1)
			tr.Read = time.Now()
			time.Sleep(3 * time.Millisecond)
			o.Offer(ctx, tr, func() {})
		}
		offer("a")
		time.Sleep(time.Second)
		offer("b") // times out after 200 ms, and again is called a second later
		time.Sleep(1500 * time.Millisecond)
		o.ForceOpen(time.Second)
		offer("c") // a probe, some time later
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		want := []fallback.Delivery{
			{Outcome: fallback.OutcomeOK, Latency: 7 * time.Millisecond, Since: 10 * time.Millisecond},
			{Outcome: fallback.OutcomeTimeout, Latency: 200 * time.Millisecond, Since: 203 * time.Millisecond,
				Verdict: breaker.VerdictFailed, Error: context.DeadlineExceeded.Error()},
			{Outcome: fallback.OutcomeOK, Latency: 7 * time.Millisecond, Replayed: true},
			{Outcome: fallback.OutcomeOK, Latency: 7 * time.Millisecond, Replayed: true, Probe: true},
		}
		if len(told) != len(want) {
			t.Fatalf("told %+v", told)
		}
		for i, d := range told {
			d.Trigger = nil
			if d != want[i] {
				t.Errorf("call %d: %+v\nwant %+v", i, d, want[i])
			}
		}
		if len(probes) != 1 || probes[0] != breaker.VerdictHealthy {
			t.Errorf("probes: %v", probes)
		}
		if len(parkedFor) != 2 || parkedFor[0] != 1007*time.Millisecond {
			t.Errorf("parked for %v", parkedFor)
		}
	})
}

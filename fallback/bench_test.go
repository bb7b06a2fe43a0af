package fallback_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// BenchmarkOffer is the way of a live trigger through an outlet: offered,
// delivered to a sink that takes no time, settled.
func BenchmarkOffer(b *testing.B) {
	sink := sinkFunc(func(context.Context, router.Trigger) error { return nil })
	o := fallback.New(sink, breaker.New(breaker.Config{}), fallback.NewMemQueue(0, 0))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	for p := range 4 {
		if err := o.Own(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
	var triggers []router.Trigger
	for i := range 1000 {
		triggers = append(triggers, trigger(fmt.Sprint("dev", i), i))
	}
	// As many at once as a lane holds with ease, so that none is parked.
	var wg sync.WaitGroup
	free := make(chan struct{}, 512)
	settled := func() {
		<-free
		wg.Done()
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		free <- struct{}{}
		wg.Add(1)
		o.Offer(ctx, triggers[n%len(triggers)], settled)
		n++
	}
	wg.Wait()
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	if s := o.Status(); s.Backlog > 0 || s.Delivered != uint64(n) {
		b.Errorf("%d of %d delivered", s.Delivered, n)
	}
}

package router_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// feed is a source that hands the same batches out again and again, each
// device a little later and a little farther, never over an edge.
type feed struct {
	left  int // batches to send
	done  chan struct{}
	seq   uint64
	clock int64
	back  chan *router.Batch
}

func (f *feed) Read(ctx context.Context, _ int, _ uint64, out chan<- *router.Batch) error {
	for ; f.left > 0; f.left-- {
		b := <-f.back
		f.clock += 1000
		for i := range b.Messages {
			m := &b.Messages[i]
			f.seq++
			m.Seq, m.Stored = f.seq, f.clock
			m.Fix.Seq, m.Fix.Stored, m.Fix.TS = f.seq, f.clock, f.clock
			m.Fix.Lon += 1e-7
		}
		out <- b
	}
	for range cap(f.back) {
		<-f.back
	}
	close(f.done)
	<-ctx.Done()
	return nil
}

func (f *feed) Tick(context.Context, int, string) error { return nil }
func (f *feed) Answer(string, router.Answer)            {}

// BenchmarkFix is the whole way of a fix without a transition through a
// partition: the clock, the timers, match, track, and the progress. ns/op and
// allocs/op are per fix.
func BenchmarkFix(b *testing.B) {
	for _, dwell := range []bool{false, true} {
		b.Run(fmt.Sprintf("dwell=%v", dwell), func(b *testing.B) { benchmarkFix(b, dwell) })
	}
}

func benchmarkFix(b *testing.B, dwell bool) {
	const devices, perBatch, batches = 8192, 512, 4
	rng := rand.New(rand.NewPCG(1, 2))
	var fences []*geofence.Fence
	for i := range 1000 {
		fences = append(fences, circle(b, fmt.Sprint("f", i), float64(i)*1500, ""))
	}
	f := &feed{done: make(chan struct{}), clock: t0, back: make(chan *router.Batch, batches)}
	for range batches {
		batch := &router.Batch{Read: time.Now()}
		for range perBatch {
			// A third is inside a fence.
			east := float64(rng.IntN(1000))*1500 + float64(rng.IntN(3))*700
			batch.Messages = append(batch.Messages, at(0, fmt.Sprint("device.", rng.IntN(devices)), t0, east))
		}
		batch.Release = func() { f.back <- batch }
		f.back <- batch
	}
	cfg := router.PartitionConfig{
		Namespace: "acme", Source: f, Store: &owner{v: newVault()}, Fences: index(b, fences...),
		Consumers:  consumers(router.Consumer{Name: "none", Match: nothing(b)}),
		FlushAfter: time.Hour,
	}
	if dwell {
		cfg.Tracker.Dwell = []time.Duration{1000 * time.Hour}
	}
	f.left = (b.N+perBatch-1)/perBatch + batches // the first round enters fences
	p := router.NewPartition(cfg)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- p.Run(ctx) }()
	<-f.done
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

func nothing(b *testing.B) *router.Match {
	m, err := router.CompileMatch(router.MatchConfig{Fences: []string{"none"}})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

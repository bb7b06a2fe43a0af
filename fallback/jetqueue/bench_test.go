package jetqueue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

// body is the size of an ordinary trigger.
const body = 600

func benchTrigger(n int) router.Trigger {
	tr := trigger(fmt.Sprintf("device-%d", n%2000), n)
	tr.ID, tr.Fence, tr.Body = fmt.Sprintf("BENCH%d", n), "depot-7", make([]byte, body)
	return tr
}

// fill parks n triggers, up to 2,000 at once, and returns where they are.
func fill(b *testing.B, q fallback.Queue, n int) []answer {
	b.Helper()
	answers := make([]answer, n)
	room := make(chan struct{}, 2000)
	var wg sync.WaitGroup
	for i := range n {
		room <- struct{}{}
		wg.Add(1)
		q.Park(benchTrigger(i), fallback.ReasonOpen, func(seq uint64, err error) {
			answers[i] = answer{seq, err}
			<-room
			wg.Done()
		})
	}
	wg.Wait()
	for i, a := range answers {
		if a.err != nil {
			b.Fatalf("park %d: %v", i, a.err)
		}
	}
	return answers
}

// BenchmarkPark is how fast an outage can be written to disk.
func BenchmarkPark(b *testing.B) {
	s := natstest.Start(b)
	q := open(b, s.Conn(b), roomy)
	b.ReportAllocs()
	b.ResetTimer()
	fill(b, q, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "parks/s")
}

// BenchmarkReplay is the queue's part of a replay: 16 workers read the head of
// a slot and delete it.
func BenchmarkReplay(b *testing.B) {
	const workers = 16
	s := natstest.Start(b)
	q := open(b, s.Conn(b), roomy)
	fill(b, q, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for index := w; index < router.Slots; index += workers {
				after := uint64(0)
				for {
					it, ok, err := q.Head(b.Context(), fallback.Slot{Partition: 3, Index: index}, after)
					if err != nil {
						b.Error(err)
						return
					}
					if !ok {
						break
					}
					if err := q.Delete(b.Context(), it.Seq); err != nil {
						b.Error(err)
						return
					}
					after = it.Seq
					left.Add(-1)
				}
			}
		})
	}
	wg.Wait()
	if n := left.Load(); n != 0 {
		b.Fatalf("%d of %d left", n, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "replays/s")
}

// BenchmarkList is how fast an operator's listing walks the queue.
func BenchmarkList(b *testing.B) {
	s := natstest.Start(b)
	q := open(b, s.Conn(b), roomy)
	fill(b, q, b.N)
	b.ResetTimer()
	n := 0
	for _, err := range q.Items(b.Context(), fallback.Filter{}) {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != b.N {
		b.Fatalf("listed %d of %d", n, b.N)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "items/s")
}

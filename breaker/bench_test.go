package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// BenchmarkTwoMutexPairs is the yardstick: what any breaker with a lock pays
// to admit and to report.
func BenchmarkTwoMutexPairs(b *testing.B) {
	var mu sync.Mutex
	n := 0
	for b.Loop() {
		mu.Lock()
		n++
		mu.Unlock()
		mu.Lock()
		n--
		mu.Unlock()
	}
}

func BenchmarkAdmitReport(b *testing.B) {
	br := breaker.New(breaker.Config{})
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Microsecond
		p, _ := br.Admit(now)
		p.Report(now+500, breaker.Outcome{})
	}
}

func BenchmarkAdmitReportWithClock(b *testing.B) {
	br := breaker.New(breaker.Config{})
	b.ReportAllocs()
	for b.Loop() {
		p, _ := br.Admit(breaker.Now())
		p.Report(breaker.Now(), breaker.Outcome{})
	}
}

func BenchmarkOpenReject(b *testing.B) {
	br := breaker.New(breaker.Config{})
	br.ForceOpen(0, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := br.Admit(time.Second); err == nil {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkAdmitReportContended(b *testing.B) {
	br := breaker.New(breaker.Config{})
	var clock atomic.Int64
	b.SetParallelism(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := time.Duration(clock.Add(1))
		for pb.Next() {
			now += time.Microsecond
			p, _ := br.Admit(now)
			p.Report(now, breaker.Outcome{})
		}
	})
}

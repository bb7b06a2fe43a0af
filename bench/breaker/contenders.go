package main

import (
	"errors"
	"sync"
	"testing"
	"time"

	resiliency "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	sony "github.com/sony/gobreaker/v2"

	"github.com/tripline/tripline/breaker"
)

// The operations.
const (
	pair      = iota // admit and report one healthy call while closed
	contended        // the same by two goroutines at once
	reject           // be refused while open
	operations
)

// The names that the targets speak of.
const (
	yardstick     = "two sync.Mutex pairs"
	tripline      = "tripline, time passed in"
	triplineClock = "tripline, reading the clock"
	gobreaker     = "sony/gobreaker v2, two-step"
)

// contender is a row of the table.
type contender struct {
	name    string
	bench   [operations]func(*testing.B)
	figures [operations]figure
}

var errSick = errors.New("sick")

func contenders() []*contender {
	return []*contender{
		ofMutex(),
		ofTripline(),
		ofTriplineClock(),
		ofGobreaker(),
		ofGobreakerExecute(),
		ofFailsafe(),
		ofResiliency(),
		ofAegis(),
	}
}

// from builds a contender from one call while closed, and one refusal.
func from(name string, call, refused func()) *contender {
	c := &contender{name: name}
	c.bench[pair] = func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	}
	c.bench[contended] = twice(func(pb *testing.PB) {
		for pb.Next() {
			call()
		}
	})
	if refused != nil {
		c.bench[reject] = func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				refused()
			}
		}
	}
	return c
}

// twice runs the body in two goroutines.
func twice(body func(*testing.PB)) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(body)
	}
}

func ofMutex() *contender {
	var mu sync.Mutex
	n := 0
	return from(yardstick, func() {
		mu.Lock()
		n++
		mu.Unlock()
		mu.Lock()
		n--
		mu.Unlock()
	}, nil)
}

func ofTripline() *contender {
	c := &contender{name: tripline}
	c.bench[pair] = func(b *testing.B) {
		br := breaker.New(breaker.Config{})
		now := time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			now += time.Microsecond
			p, _ := br.Admit(now)
			p.Report(now+500, breaker.Outcome{})
		}
	}
	c.bench[contended] = func(b *testing.B) {
		br := breaker.New(breaker.Config{})
		twice(func(pb *testing.PB) {
			now := time.Duration(0)
			for pb.Next() {
				now += time.Microsecond
				p, _ := br.Admit(now)
				p.Report(now+500, breaker.Outcome{})
			}
		})(b)
	}
	open := breaker.New(breaker.Config{})
	open.ForceOpen(0, time.Hour)
	c.bench[reject] = func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := open.Admit(time.Second); err == nil {
				b.Fatal("admitted while open")
			}
		}
	}
	return c
}

func ofTriplineClock() *contender {
	br, open := breaker.New(breaker.Config{}), breaker.New(breaker.Config{})
	open.ForceOpen(breaker.Now(), time.Hour)
	return from(triplineClock, func() {
		p, _ := br.Admit(breaker.Now())
		p.Report(breaker.Now(), breaker.Outcome{})
	}, func() {
		if _, err := open.Admit(breaker.Now()); err == nil {
			panic("admitted while open")
		}
	})
}

// gobreakerSettings gives it the same window as ours.
func gobreakerSettings() sony.Settings {
	return sony.Settings{
		Interval: 10 * time.Second, BucketPeriod: time.Second, Timeout: time.Hour,
		ReadyToTrip: func(c sony.Counts) bool { return c.ConsecutiveFailures >= 5 },
	}
}

func ofGobreaker() *contender {
	br := sony.NewTwoStepCircuitBreaker[struct{}](gobreakerSettings())
	open := sony.NewTwoStepCircuitBreaker[struct{}](gobreakerSettings())
	for range 5 {
		done, _ := open.Allow()
		done(errSick)
	}
	return from(gobreaker, func() {
		done, _ := br.Allow()
		done(nil)
	}, func() {
		if _, err := open.Allow(); err == nil {
			panic("admitted while open")
		}
	})
}

func ofGobreakerExecute() *contender {
	br := sony.NewCircuitBreaker[struct{}](gobreakerSettings())
	open := sony.NewCircuitBreaker[struct{}](gobreakerSettings())
	ok := func() (struct{}, error) { return struct{}{}, nil }
	for range 5 {
		open.Execute(func() (struct{}, error) { return struct{}{}, errSick })
	}
	return from("sony/gobreaker v2, Execute", func() { br.Execute(ok) }, func() {
		if _, err := open.Execute(ok); err == nil {
			panic("admitted while open")
		}
	})
}

func ofFailsafe() *contender {
	build := func() circuitbreaker.CircuitBreaker[any] {
		return circuitbreaker.NewBuilder[any]().
			WithFailureRateThreshold(0.5, 10, 10*time.Second).WithDelay(time.Hour).Build()
	}
	br, open := build(), build()
	open.Open()
	return from("failsafe-go", func() {
		br.TryAcquirePermit()
		br.RecordSuccess()
	}, func() {
		if open.TryAcquirePermit() {
			panic("admitted while open")
		}
	})
}

func ofResiliency() *contender {
	br, open := resiliency.New(5, 1, time.Hour), resiliency.New(1, 1, time.Hour)
	ok := func() error { return nil }
	open.Run(func() error { return errSick })
	return from("eapache/go-resiliency", func() { br.Run(ok) }, func() {
		if open.Run(ok) == nil {
			panic("admitted while open")
		}
	})
}

// ofAegis has no open state: it refuses by chance, the likelier the more
// calls fail.
func ofAegis() *contender {
	br := sre.NewBreaker()
	return from("go-kratos/aegis sre", func() {
		br.Allow()
		br.MarkSuccess()
	}, nil)
}

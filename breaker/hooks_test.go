package breaker_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// TestB17_HooksOutsideTheLock: a hook may call the breaker, even so that it
// changes again; all is told in order.
func TestB17_HooksOutsideTheLock(t *testing.T) {
	var b *breaker.Breaker
	var told []breaker.State
	depth := 0
	b = breaker.New(breaker.Config{Hooks: breaker.Hooks{Transition: func(tr breaker.Transition) {
		if depth++; depth != 1 {
			t.Error("a hook is called inside another")
		}
		defer func() { depth-- }()
		told = append(told, tr.To)
		switch tr.Reason {
		case breaker.ReasonForced:
			b.ProbeNow(tr.Until)
		case breaker.ReasonProbeNow, breaker.ReasonWindowEnded:
			for range 5 {
				p, err := b.Admit(tr.At)
				if err != nil {
					t.Error(err)
				}
				p.Report(tr.At, breaker.Outcome{})
			}
		}
	}}})
	b.ForceOpen(0, 2*sec)
	want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestB17_PanicsHarmNothing: neither a panic nor a Goexit in a hook stops the
// breaker, or the telling of what follows.
func TestB17_PanicsHarmNothing(t *testing.T) {
	for name, burst := range map[string]func(){
		"panic":  func() { panic("listener") },
		"goexit": runtime.Goexit,
	} {
		told := 0
		b := breaker.New(breaker.Config{Hooks: breaker.Hooks{Transition: func(breaker.Transition) {
			told++
			burst()
		}}})
		steps := []func(){
			func() { b.ForceOpen(0, sec) },
			func() { b.Poll(sec) },
			func() { b.ForceOpen(sec, sec) },
			func() { b.Poll(2 * sec) },
		}
		for _, step := range steps {
			var wg sync.WaitGroup
			wg.Go(step)
			wg.Wait()
		}
		s := b.Snapshot(2 * sec)
		equal(t, name+": state", s.State, breaker.HalfOpen)
		equal(t, name+": told", told, 4)
		equal(t, name+": counted", s.Counters.HookPanics, 4)
	}
}

// TestB17_InOrderUnderConcurrency: however many goroutines cause transitions,
// the hook sees a chain.
func TestB17_InOrderUnderConcurrency(t *testing.T) {
	var mu sync.Mutex // only to read it at the end; the hook is never run twice at once
	var told []breaker.Transition
	b := breaker.New(breaker.Config{Base: ms, Max: ms, Hooks: breaker.Hooks{Transition: func(tr breaker.Transition) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, tr)
	}}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				now := time.Duration(i) * ms
				switch (i + g) % 3 {
				case 0:
					b.ForceOpen(now, ms)
				default:
					if p, err := b.Admit(now); err == nil {
						p.Report(now, breaker.Outcome{})
					}
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	from := breaker.Closed
	for i, tr := range told {
		if tr.From != from || tr.Generation != uint64(i+1) {
			t.Fatalf("transition %d is %v to %v in generation %d, after %v", i, tr.From, tr.To, tr.Generation, from)
		}
		from = tr.To
	}
	if len(told) < 100 {
		t.Errorf("only %d transitions", len(told))
	}
}

// TestVerdictHook: each judgement is told once, at its moment.
func TestVerdictHook(t *testing.T) {
	var told []string
	b := breaker.New(breaker.Config{Hooks: breaker.Hooks{Verdict: func(probe bool, v breaker.Verdict) {
		if probe {
			told = append(told, "probe "+v.String())
		} else {
			told = append(told, v.String())
		}
	}}})
	admit := func(now time.Duration) breaker.Permit {
		p, err := b.Admit(now)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := admit(0)
	p.Report(ms, breaker.Outcome{})
	p.Report(ms, breaker.Outcome{})
	p = admit(ms)
	b.Poll(60 * ms)
	p.Report(61*ms, breaker.Outcome{})
	p = admit(61 * ms)
	p.Report(200*ms, breaker.Outcome{Kind: breaker.Failed})
	admit(200*ms).Report(201*ms, breaker.Outcome{Kind: breaker.Ignored})
	admit(201*ms).Report(202*ms, breaker.Outcome{Kind: breaker.Cancelled})
	admit(202 * ms)
	b.Poll(5 * sec)
	b.ForceOpen(5*sec, sec)
	p = admit(6 * sec)
	p.Report(6*sec+51*ms, breaker.Outcome{})
	want := []string{"healthy", "repeated", "slow", "slow", "failed", "ignored", "cancelled", "slow", "failed", "probe slow", "probe stale"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q\nwant %q", told, want)
	}
}

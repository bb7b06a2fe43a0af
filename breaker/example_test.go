package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tripline/tripline/breaker"
)

// The machine never reads the clock: five failures trip it, and five fast
// probes, two at a time at most, close it, in whatever time the caller says.
func Example() {
	b := breaker.New(breaker.Config{
		Jitter: breaker.None,
		Hooks: breaker.Hooks{Transition: func(t breaker.Transition) {
			fmt.Printf("%v: %v to %v, %s\n", t.At, t.From, t.To, t.Text)
		}},
	})
	now := time.Duration(0)
	for range 5 {
		p, _ := b.Admit(now)
		now += 10 * time.Millisecond
		p.Report(now, breaker.Outcome{Kind: breaker.Failed})
	}
	_, err := b.Admit(now)
	fmt.Println(errors.Is(err, breaker.ErrOpen))
	now = b.Poll(now)
	for range 5 {
		p, _ := b.Admit(now)
		now += 5 * time.Millisecond
		p.Report(now, breaker.Outcome{Kind: breaker.OK})
	}
	// Output:
	// 50ms: closed to open, 5 bad calls in a row
	// true
	// 1.05s: open to half_open, the open window of 1s has ended
	// 1.075s: half_open to closed, 5 healthy probes in a row within 50 ms
}

func ExampleBreaker_Do() {
	b := breaker.New(breaker.Config{P99: 200 * time.Millisecond})
	err := b.Do(context.Background(), func(context.Context) error {
		return errors.New("503")
	})
	if failed, ok := errors.AsType[*breaker.CallError](err); ok {
		fmt.Println(failed.Reason, failed.Err)
	}
	// Output: failed 503
}

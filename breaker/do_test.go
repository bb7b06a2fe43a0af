package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/breaker"
)

var errSick = errors.New("sick")

type retryError struct{ after time.Duration }

func (e retryError) Error() string             { return "busy" }
func (e retryError) RetryAfter() time.Duration { return e.after }

// TestDo walks through what Do returns and reports.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Config{Rand: func() float64 { return 0.5 }})
		take := func(d time.Duration, err error) func(context.Context) error {
			return func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		reason := func(err error) string {
			if e, ok := errors.AsType[*breaker.CallError](err); ok {
				return e.Reason.String()
			}
			return fmt.Sprint(err)
		}
		ctx := t.Context()
		equal(t, "fast", reason(b.Do(ctx, take(ms, nil))), "<nil>")
		equal(t, "slow success", reason(b.Do(ctx, take(60*ms, nil))), "<nil>")
		equal(t, "fast failure", reason(b.Do(ctx, take(ms, errSick))), "failed")
		err := b.Do(ctx, take(time.Hour, nil))
		equal(t, "timeout", reason(err), "slow")
		equal(t, "the error inside", errors.Is(err, context.DeadlineExceeded), true)
		equal(t, "ignored", b.Do(ctx, take(ms, breaker.Ignore(errSick))).Error(), "sick")
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		equal(t, "cancelled", reason(b.Do(cancelled, take(ms, nil))), "context canceled")
		s := b.Snapshot(breaker.Now())
		equal(t, "calls", s.Calls, 4)
		equal(t, "bad row", s.BadRow, 3)
		equal(t, "permits out", s.InFlight, 0)

		b.Do(ctx, take(ms, errSick))
		equal(t, "retry-after", reason(b.Do(ctx, take(ms, retryError{7 * sec}))), "failed")
		err = b.Do(ctx, take(ms, nil))
		equal(t, "open", reason(err), "open")
		equal(t, "the error inside", errors.Is(err, breaker.ErrOpen), true)
		equal(t, "window", b.Snapshot(breaker.Now()).Window, 7*sec)
		time.Sleep(7 * sec)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { b.Do(ctx, take(30*ms, nil)) })
		}
		synctest.Wait()
		err = b.Do(ctx, take(ms, nil))
		equal(t, "probe cap", reason(err), "probe_cap")
		equal(t, "the error inside", errors.Is(err, breaker.ErrProbeCap), true)
		wg.Wait()
	})
}

// TestB1_DoAlwaysReports: whatever becomes of the call, the permit comes back.
func TestB1_DoAlwaysReports(t *testing.T) {
	endings := map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("bug") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
		"cancelled": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	for name, fn := range endings {
		synctest.Test(t, func(t *testing.T) {
			b := breaker.New(breaker.Config{})
			b.ForceOpen(breaker.Now(), sec)
			time.Sleep(sec)
			ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { recover() }()
				b.Do(ctx, fn)
			})
			wg.Wait()
			s := b.Snapshot(breaker.Now())
			equal(t, name+": probes out", s.ProbesInFlight, 0)
			equal(t, name+": state", s.State, breaker.Open)
			equal(t, name+": reason", s.Reason, breaker.ReasonProbeFailed)
		})
	}
}

func TestIgnoreNil(t *testing.T) {
	if err := breaker.Ignore(nil); err != nil {
		t.Errorf("Ignore(nil) is %v", err)
	}
	if err := breaker.Ignore(errSick); !errors.Is(err, errSick) {
		t.Errorf("Ignore hides its error: %v", err)
	}
}

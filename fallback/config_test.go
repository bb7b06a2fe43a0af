package fallback_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tripline/tripline/breaker"
	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

func TestConfigNamesWhatIsOutOfRange(t *testing.T) {
	if err := (fallback.Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
	none := fallback.Config{Partitions: fallback.None, MaxAge: fallback.None, ShutdownGrace: fallback.None}
	if err := none.Validate(); err != nil {
		t.Errorf("with None: %v", err)
	}
	for field, c := range map[string]fallback.Config{
		"concurrency":    {Concurrency: -3},
		"lane":           {Lane: 2_000_000},
		"max_waiting":    {MaxWaiting: -5},
		"max_parks":      {MaxParks: 1_000_000},
		"max_attempts":   {MaxAttempts: 5000},
		"partitions":     {Partitions: 1 << 20},
		"on_full":        {OnFull: 7},
		"max_rate":       {MaxRate: math.NaN()},
		"max_age":        {MaxAge: -2},
		"shutdown_grace": {ShutdownGrace: -2},
		"stop_timeout":   {StopTimeout: -2},
		"queue_timeout":  {QueueTimeout: -2},
		"health_every":   {HealthEvery: -2},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "lane") {
			t.Errorf("New: %v", v)
		}
	}()
	fallback.New(nil, breaker.New(breaker.Config{}), fallback.NewMemQueue(0, 0), fallback.With(fallback.Config{Lane: -9}))
}

func TestOnFullSaysItsWord(t *testing.T) {
	for f, want := range map[fallback.OnFull]string{
		fallback.Block: "block", fallback.Dead: "dead", fallback.Drop: "drop", 9: "OnFull(9)",
	} {
		if f.String() != want {
			t.Errorf("%d: %s", f, f)
		}
	}
}

// A consumer is composed in one expression: an outlet around a sink, a breaker
// and a queue.
func Example() {
	printer := sinkFunc(func(_ context.Context, t router.Trigger) error {
		fmt.Println(t.Device, "crossed", t.Fence)
		return nil
	})
	outlet := fallback.New(printer, breaker.New(breaker.Config{}), fallback.NewMemQueue(1<<20, 1000))

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- outlet.Run(ctx) }()

	settled := make(chan struct{})
	trigger := router.Trigger{ID: "1", Device: "bus.7", Slot: router.SlotOf("bus.7"), Fence: "depot"}
	outlet.Offer(ctx, trigger, func() { close(settled) })
	<-settled
	stop()
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	// Output: bus.7 crossed depot
}

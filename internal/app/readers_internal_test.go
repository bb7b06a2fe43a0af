package app

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAReaderThatLeavesItsTickIsSilent(t *testing.T) {
	var r readers
	start := time.Now()
	ticks, away := map[int]int{}, false
	tick := func(_ context.Context, partition int) error {
		if away {
			return errors.New("away")
		}
		ticks[partition]++
		return nil
	}
	positions := map[int]uint64{0: 10, 1: 20, 2: 30}
	look := func(after time.Duration) (int, bool) {
		t.Helper()
		r.look(t.Context(), start.Add(after), positions, tick)
		partition, _, ok := r.silent(start.Add(after))
		return partition, ok
	}
	for _, step := range []struct {
		after  time.Duration
		change func()
		ticks  map[int]int // so far
		silent bool
	}{
		{after: 0},
		{after: 10 * time.Second, change: func() { positions[0]++ }},
		{after: 14 * time.Second},
		// While NATS is away there are no ticks, and nobody is silent.
		{after: 15 * time.Second, change: func() { away = true }},
		{after: 60 * time.Second, change: func() { positions[0]++ }},
		{after: 61 * time.Second, change: func() { away = false }, ticks: map[int]int{1: 1, 2: 1}},
		{after: 66 * time.Second, change: func() { positions[2]++ }, ticks: map[int]int{1: 1, 2: 1}},
		{after: 90 * time.Second, change: func() { positions[0]++ }, ticks: map[int]int{1: 1, 2: 2}},
		{after: 91 * time.Second, ticks: map[int]int{1: 1, 2: 2}, silent: true},
		{after: 96 * time.Second, change: func() { positions[1]++ }, ticks: map[int]int{1: 1, 2: 2}},
		// One that runs elsewhere now is no longer ours to judge.
		{after: 110 * time.Second, change: func() { delete(positions, 2) }, ticks: map[int]int{0: 1, 1: 1, 2: 2}},
		{after: 125 * time.Second, change: func() { positions[0]++ }, ticks: map[int]int{0: 1, 1: 2, 2: 2}},
	} {
		if step.change != nil {
			step.change()
		}
		partition, silent := look(step.after)
		if silent != step.silent || silent && partition != 1 {
			t.Errorf("after %v: partition %d silent %t, want %t", step.after, partition, silent, step.silent)
		}
		for number := range 3 {
			if ticks[number] != step.ticks[number] {
				t.Errorf("after %v: ticks %v, want %v", step.after, ticks, step.ticks)
				break
			}
		}
	}
}

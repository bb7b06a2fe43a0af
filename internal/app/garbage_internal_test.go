package app

import "testing"

func TestASmallHeapIsCollectedSeldom(t *testing.T) {
	for _, c := range []struct {
		alive uint64 // MiB
		want  int
	}{
		{0, 400}, {10, 400}, {64, 400}, {80, 320}, {128, 200}, {256, 100}, {300, 100}, {100_000, 100},
	} {
		if got := gcPercent(c.alive << 20); got != c.want {
			t.Errorf("%d MiB alive: %d %%, want %d", c.alive, got, c.want)
		}
	}
}

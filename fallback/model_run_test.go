package fallback

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// weather changes the mood.
func (w *world) weather() {
	w.mood = mood{}
	switch w.r.IntN(9) {
	case 0:
		w.mood = mood{fail: 100}
	case 1:
		w.mood = mood{slow: 95, fail: 20}
	case 2:
		w.mood = mood{fail: 30, lost: 30}
	case 3:
		w.mood = mood{full: 60, fail: 50}
	case 4:
		w.mood = mood{reject: 20, throttle: 20, unsent: 10, full: 20}
	case 5:
		w.mood = mood{lost: 60, slow: 50}
	case 6:
		w.mood = mood{gone: 5, fail: 20, full: 20}
	}
}

// step does one random thing.
func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 25:
		w.offer()
	case n < 45:
		w.answer()
	case n < 65:
		w.take()
	case n < 88:
		w.work()
	case n < 95:
		w.pass(time.Duration(w.r.IntN(100)) * time.Millisecond)
	case n < 96:
		w.pass(time.Duration(w.r.IntN(5000)) * time.Millisecond)
	case n < 97:
		w.weather()
	case n < 98:
		w.sweep()
	case n < 99:
		w.core.paused = !w.core.paused
	default:
		w.upset()
	}
}

// upset does what is rare.
func (w *world) upset() {
	switch w.r.IntN(12) {
	case 0:
		w.restart()
	case 1:
		w.stop()
	case 2:
		w.disown()
	case 3, 4, 5:
		w.redrive()
	case 6:
		w.core.disabled = false
	}
}

// shine lets everything end well.
func (w *world) shine() {
	w.logf("sunshine")
	w.mood, w.sunny, w.core.paused, w.core.disabled = mood{}, true, false, false
	for range 200_000 {
		for len(w.parks) > 0 {
			w.answer()
		}
		for range w.cfg.Concurrency {
			w.take()
		}
		for len(w.tasks) > 0 {
			w.work()
		}
		w.sweep()
		if len(w.store.items) == 0 && w.core.quiet() && len(w.refused) == 0 && w.core.parking == 0 {
			return
		}
		w.pass(20 * time.Millisecond)
	}
	for _, i := range w.store.items {
		w.logf("left: %s", i.Trigger.ID)
	}
	w.failf("it never ends: %d stored, %d in memory, state %v, parking %d, refused %d",
		len(w.store.items), w.core.outCount+w.core.lane, w.core.state, w.core.parking, len(w.refused))
}

// verify checks, at the end, that nothing is lost.
func (w *world) verify() {
	lost := 0
	for device, n := range w.devices {
		for i := 1; i <= n; i++ {
			id := fmt.Sprintf("%s/%d", device, i)
			if !w.seen[id] && w.dead[id] == "" {
				lost++
				w.logf("lost %s", id)
			}
		}
	}
	if lost > w.dropped {
		w.failf("%d of %d are lost, %d were dropped", lost, w.sent, w.dropped)
	}
	for _, o := range w.pending {
		if o.settled != 1 {
			w.failf("%s is settled %d times", o.trigger.ID, o.settled)
		}
	}
}

// modelConfig draws a configuration that makes the bounds matter.
func modelConfig(r chance) Config {
	return Config{
		Partitions: None, Concurrency: 1 + r.IntN(4), Lane: 1 + r.IntN(12),
		MaxWaiting: 300 + r.IntN(3000), MaxParks: 1 + r.IntN(4), MaxAttempts: 1 + r.IntN(8),
		MaxAge: []time.Duration{None, time.Minute, 5 * time.Second}[r.IntN(3)],
		OnFull: OnFull(r.IntN(3)), MaxRate: []float64{0, 0, 500}[r.IntN(3)],
	}
}

func runModel(t testing.TB, r chance, steps int) {
	w := newWorld(t, r, modelConfig(r))
	if r.IntN(4) > 0 {
		w.own()
	}
	for i := range steps {
		if i == steps/4 {
			w.own()
		}
		w.step()
	}
	w.shine()
	w.verify()
}

func TestR2_NoTriggerOvertakesAnotherOfItsDevice(t *testing.T) {
	runs := 4000
	if testing.Short() {
		runs = 150
	}
	for half := range 2 {
		t.Run(fmt.Sprint("half ", half), func(t *testing.T) {
			t.Parallel()
			for seed := half; seed < runs; seed += 2 {
				r := rand.New(rand.NewPCG(uint64(seed), 2))
				if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runModel(t, r, 600) }) {
					return
				}
			}
		})
	}
}

// bytesChance decides by the bytes of a fuzz input.
type bytesChance struct {
	data []byte
	rest *rand.Rand
}

func (b *bytesChance) IntN(n int) int {
	if len(b.data) == 0 {
		return b.rest.IntN(n)
	}
	v := int(b.data[0])
	b.data = b.data[1:]
	return v * n / 256
}

func FuzzSlots(f *testing.F) {
	f.Add([]byte("live, parking, live"))
	f.Add([]byte{0, 200, 30, 60, 250, 251, 252, 1, 2, 3, 99, 98, 97})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			t.Skip("long enough before")
		}
		n := len(data)
		runModel(t, &bytesChance{data, rand.New(rand.NewPCG(1, 2))}, n)
	})
}

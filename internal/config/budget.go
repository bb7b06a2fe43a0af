package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Budget is how the store is divided: the server reserves each stream's bound
// when it makes the stream.
type Budget struct {
	Ingest Size // stream of locations; 0 in core mode
	State  Size
	Dead   Size
	Fences Size // bucket of fences; 0 without one
	// Fallback is each consumer's queue, by its name.
	Fallback map[string]Size
}

// Total is the sum of all streams.
func (b Budget) Total() Size {
	sum := b.Ingest + b.State + b.Dead + b.Fences
	for _, s := range b.Fallback {
		sum += s
	}
	return sum
}

// The least that a stream can work with.
const minStream Size = 1 << 20

// Budget divides a store of the given size: what is configured is kept; the
// locations get a quarter, state, dead letters and the bucket of fences 5 %
// each, and a consumer's queue 1 GiB or its part of half the store. The error
// says which key to lower, or that the store is too small.
func (c *Config) Budget(store Size) (Budget, error) {
	b := Budget{State: store / 20, Dead: store / 20, Fallback: map[string]Size{}}
	if c.Ingest.Durable {
		b.Ingest = cmp.Or(c.Ingest.MaxBytes, store/4)
	}
	if slices.ContainsFunc(c.Fences, func(f FenceSource) bool { return f.KV }) {
		b.Fences = store / 20
	}
	configured := map[string]Size{}
	if c.Ingest.Durable && c.Ingest.MaxBytes > 0 {
		configured["ingest.max_bytes"] = c.Ingest.MaxBytes
	}
	for i, k := range c.Consumers {
		b.Fallback[k.Name] = cmp.Or(k.Fallback.MaxBytes, min(1<<30, store/2/Size(len(c.Consumers))))
		if k.Fallback.MaxBytes > 0 {
			configured[fmt.Sprintf("consumers[%d].fallback.max_bytes (%s)", i, k.Name)] = k.Fallback.MaxBytes
		}
	}
	if least := min(b.State, b.Dead); least < minStream {
		return Budget{}, fmt.Errorf("a store of %s is too small: it takes at least %s: raise nats.max_store, or what the NATS account may store", store, 20*minStream)
	}
	total := b.Total()
	if total <= store {
		return b, nil
	}
	if len(configured) == 0 {
		return Budget{}, fmt.Errorf("a store of %s is too small for %d consumers", store, len(c.Consumers))
	}
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(configured)), func(x, y string) int {
		return cmp.Compare(configured[x], configured[y])
	})
	return Budget{}, fmt.Errorf("the streams reserve %s of a store of %s: lower %s (now %s) by %s, or raise nats.max_store",
		total, store, largest, configured[largest], total-store)
}

package breaker

import (
	"sync/atomic"
	"time"
)

// sliceCount is how many slices a window is kept in.
const sliceCount = 10

// slice counts the judged calls of a tenth of the window.
type slice struct {
	// healthy counts those that were OK within P99, by latency. It is added
	// to without the lock. A slice is never used again, so that an addition
	// which comes late lands where it belongs, or nowhere.
	healthy [buckets]atomic.Uint32

	// All below is guarded by the breaker's lock.

	counts           // of the calls that were not healthy
	bad    histogram // their latencies, for display only
}

// counts are judged calls.
type counts struct {
	calls  int // OK, failed, or still in flight past P99
	over   int // of these, over P99
	errors int // of these, failed
}

// window counts the judged calls of the last ten slices: the one that is
// being filled and the nine before it. The breaker's lock guards it.
type window struct {
	width   time.Duration // of a slice
	top     int           // the last bucket that a healthy call can fall into
	ends    time.Duration // when the slice that is being filled ends; past: none is
	at      int           // its index
	slices  [sliceCount]*slice
	bad     counts // all that were not healthy
	healthy int    // healthy calls of all slices but the one being filled
}

// turn moves the window on to now and returns the slice to fill.
func (w *window) turn(now time.Duration) *slice {
	if w.ends == past {
		return w.reset(now)
	}
	if now >= w.ends {
		steps := (now-w.ends)/w.width + 1
		w.ends += steps * w.width
		for range min(steps, sliceCount) {
			w.at = (w.at + 1) % sliceCount
			if old := w.slices[w.at]; old != nil {
				w.bad.calls -= old.calls
				w.bad.over -= old.over
				w.bad.errors -= old.errors
			}
			w.slices[w.at] = nil
		}
		w.slices[w.at] = new(slice)
		w.healthy = 0
		for i, s := range w.slices {
			if s != nil && i != w.at {
				w.healthy += s.healthyCalls(w.top)
			}
		}
	}
	return w.slices[w.at]
}

// reset empties the window; a first slice begins now.
func (w *window) reset(now time.Duration) *slice {
	*w = window{width: w.width, top: w.top, ends: now + w.width}
	w.slices[0] = new(slice)
	return w.slices[0]
}

// sum counts all the calls of the window.
func (w *window) sum() counts {
	all := w.bad
	if w.ends != past {
		all.calls += w.healthy + w.slices[w.at].healthyCalls(w.top)
	}
	return all
}

// add counts a call that was not healthy. Each field is what it adds: a call
// that was counted as over can still add an error.
func (w *window) add(c counts) {
	s := w.slices[w.at]
	for _, to := range []*counts{&w.bad, &s.counts} {
		to.calls += c.calls
		to.over += c.over
		to.errors += c.errors
	}
}

// latencies returns a histogram of the finished calls of the window.
func (w *window) latencies() (all histogram) {
	for _, s := range w.slices {
		if s == nil {
			continue
		}
		for i := range all {
			all[i] += s.healthy[i].Load() + s.bad[i]
		}
	}
	return all
}

// healthyCalls adds up the buckets up to top.
func (s *slice) healthyCalls(top int) int {
	n := 0
	for i := range s.healthy[:top+1] {
		n += int(s.healthy[i].Load())
	}
	return n
}

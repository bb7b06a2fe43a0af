package breaker

import "time"

// sliceCount is how many slices a window is kept in.
const sliceCount = 10

// counts are the judged calls of a slice, or of a whole window.
type counts struct {
	calls  int // OK, failed, or still in flight past P99
	over   int // of these, over P99
	errors int // failed
}

// window counts the judged calls of the last ten slices: the one that is
// being filled and the nine before it.
type window struct {
	width time.Duration // of a slice
	ends  time.Duration // when the slice that is being filled ends
	at    int           // its index
	sum   counts
	slice [sliceCount]counts
	hist  [sliceCount]histogram // for display only: decides nothing
}

// turn moves the window on to now, which is at or after w.ends.
func (w *window) turn(now time.Duration) {
	if w.ends == past { // never used
		w.reset(now)
		return
	}
	steps := (now-w.ends)/w.width + 1
	w.ends += steps * w.width
	for range min(steps, sliceCount) {
		w.at = (w.at + 1) % sliceCount
		old := w.slice[w.at]
		w.sum.calls -= old.calls
		w.sum.over -= old.over
		w.sum.errors -= old.errors
		w.slice[w.at] = counts{}
		w.hist[w.at] = histogram{}
	}
}

// reset empties the window; a first slice begins now.
func (w *window) reset(now time.Duration) {
	*w = window{width: w.width, ends: now + w.width}
}

// quantile returns the q-th percentile of the window's latencies, by nearest
// rank, to within 7 %; 0 if there are none.
func (w *window) quantile(percent int) time.Duration {
	var all histogram
	for i := range w.hist {
		all.add(&w.hist[i])
	}
	return all.quantile(percent)
}

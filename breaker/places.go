package breaker

import (
	"sync/atomic"
	"time"
)

// A place holds one permit that is out, in one word, so that taking it and
// giving it back is one atomic step each and needs no lock:
//
//	bit  63     busy
//	bit  62     overdue: has passed P99 in flight, and was judged then
//	bit  61     stale: admitted in an earlier generation
//	bit  60     behind: admitted before the newest bad call was judged
//	bit  59     probe
//	bits 55-58  generation, its low bits
//	bits 44-54  serial, which rises each time the place is taken
//	bits 0-43   begin in ns, its low bits
//
// The marks (overdue, stale, behind) are set under the breaker's lock. The
// serial and the time together tell a permit from a later one in the same
// place. Of a free place only the serial is kept.
const (
	busy    = 1 << 63
	overdue = 1 << 62
	stale   = 1 << 61
	behind  = 1 << 60
	aProbe  = 1 << 59
	marks   = overdue | stale | behind

	generationShift = 55
	generationMask  = 0xf << generationShift
	beginBits       = 44 // 4.8 h, more than twice the longest lease
	beginMask       = 1<<beginBits - 1
	serialOne       = 1 << beginBits
	serialMask      = 0x7ff << beginBits
)

// places is a block of places. When it is half full a block of twice the size
// takes over; the older ones only empty.
type places struct {
	owner *Breaker
	older *places
	at    []atomic.Uint64 // a power of two of them
}

// firstPlaces is the size of the first block.
const firstPlaces = 128

func newPlaces(owner *Breaker, older *places, size int) *places {
	return &places{owner: owner, older: older, at: make([]atomic.Uint64, size)}
}

// home is where a call that begins now looks for a place first.
func (ps *places) home(now time.Duration) uint32 {
	return uint32((uint64(now)*0x9e3779b97f4a7c15)>>32) & uint32(len(ps.at)-1)
}

// word is what a place that held free becomes when a call takes it.
func word(free, generation uint64, now time.Duration) uint64 {
	return busy | (free+serialOne)&serialMask | generation<<generationShift&generationMask | uint64(now)&beginMask
}

// begin returns when the call in a place began, given a time that is within
// two hours of it.
func begin(w uint64, near time.Duration) time.Duration {
	ahead := int64(w-uint64(near)) << (64 - beginBits) >> (64 - beginBits)
	return near + time.Duration(ahead)
}

// held says whether w is the permit's word, whatever marks it has got.
func (p Permit) held(w uint64) bool { return (w^p.word)&^marks == 0 }

// take empties the permit's place. It returns its word, and false if the
// permit had come back before.
func (p Permit) take() (uint64, bool) {
	at := &p.places.at[p.index()]
	for {
		w := at.Load()
		if !p.held(w) {
			return 0, false
		}
		if at.CompareAndSwap(w, w&serialMask) {
			return w, true
		}
	}
}

// each calls do for every busy place. The word may have changed meanwhile.
func (ps *places) each(do func(at *atomic.Uint64, w uint64)) {
	for ; ps != nil; ps = ps.older {
		for i := range ps.at {
			if w := ps.at[i].Load(); w&busy != 0 {
				do(&ps.at[i], w)
			}
		}
	}
}

// mark sets a mark on every permit that is out.
func (ps *places) mark(m uint64) {
	ps.each(func(at *atomic.Uint64, w uint64) {
		for w&busy != 0 && w&m == 0 && !at.CompareAndSwap(w, w|m) {
			w = at.Load()
		}
	})
}

// place finds a place for a call that begins now, under the lock; others may
// be taking places without it.
func (b *Breaker) place(now time.Duration, probe bool) Permit {
	flag := uint64(0)
	if probe {
		flag = aProbe
	}
	for {
		ps := b.places.Load()
		size := uint32(len(ps.at))
		full := uint32(0)
		for i, left := ps.home(now), size; left > 0; i, left = (i+1)&(size-1), left-1 {
			free := ps.at[i].Load()
			if free&busy != 0 {
				if full++; full > size/2 {
					break
				}
				continue
			}
			w := word(free, b.generation, now) | flag
			if ps.at[i].CompareAndSwap(free, w) {
				return Permit{ps, now, w, b.generation<<32 | flag>>(59-31) | uint64(i)}
			}
		}
		b.places.Store(newPlaces(b, ps, 2*int(size)))
	}
}

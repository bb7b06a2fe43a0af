package app

import (
	"sync"
	"time"
)

// pacer keeps a fault that strikes thousands of triggers from writing
// thousands of lines: of each kind one is let through every so often, with
// how many were not since the last.
type pacer struct {
	every time.Duration

	mu    sync.Mutex // guards kinds
	kinds map[string]*pace
}

type pace struct {
	last   time.Time
	unsaid int
}

func newPacer(every time.Duration) *pacer {
	return &pacer{every: every, kinds: map[string]*pace{}}
}

// say calls log, outside the lock, if it is time for that kind of line.
// unsaid is how many were not said since the last. There must be few kinds.
func (p *pacer) say(kind string, log func(unsaid int)) {
	now := time.Now()
	p.mu.Lock()
	k := p.kinds[kind]
	if k == nil {
		k = new(pace)
		p.kinds[kind] = k
	}
	if !k.last.IsZero() && now.Sub(k.last) < p.every {
		k.unsaid++
		p.mu.Unlock()
		return
	}
	unsaid := k.unsaid
	k.last, k.unsaid = now, 0
	p.mu.Unlock()
	log(unsaid)
}

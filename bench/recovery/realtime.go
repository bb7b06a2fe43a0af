package main

import (
	"context"
	"time"
)

// stage plays a simulation, or one side of it, in real time: what is due by
// the clock happens, and what others ask it to do.
type stage struct {
	s     *sim
	began time.Time
	asked chan func()
	after func() // follows everything that happened; may be nil
}

func newStage(s *sim, began time.Time, after func()) *stage {
	return &stage{s: s, began: began, asked: make(chan func(), 256), after: after}
}

// run plays until ctx ends. The simulation is this goroutine's alone.
func (st *stage) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			st.catchUp()
		case f := <-st.asked:
			st.catchUp()
			f()
		}
		if st.after != nil {
			st.after()
		}
		wait := time.Minute
		if len(st.s.events) > 0 {
			wait = time.Until(st.began.Add(st.s.events[0].at))
		}
		timer.Reset(wait)
	}
}

// catchUp plays what has become due, each at its own time.
func (st *stage) catchUp() {
	s, now := st.s, time.Since(st.began)
	for len(s.events) > 0 && s.events[0].at <= now {
		e := s.events.pop()
		s.now = max(s.now, e.at)
		s.handle(e)
	}
	s.now = max(s.now, now)
}

// do has f done with the simulation, soon.
func (st *stage) do(ctx context.Context, f func()) {
	select {
	case st.asked <- f:
	case <-ctx.Done():
	}
}

// ask is do, and waits for it.
func (st *stage) ask(ctx context.Context, f func()) {
	done := make(chan struct{})
	st.do(ctx, func() { f(); close(done) })
	select {
	case <-done:
	case <-ctx.Done():
	}
}

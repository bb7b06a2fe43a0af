package queuetest

import (
	"context"
	"errors"
	"sync"

	"github.com/tripline/tripline/fallback"
	"github.com/tripline/tripline/router"
)

// Step is one kind of step of a queue.
type Step string

// The steps.
const (
	Park   Step = "park"
	Head   Step = "head"
	Delete Step = "delete"
	Table  Step = "table"
	Oldest Step = "oldest"
	Bury   Step = "bury"
)

// Steps lists them all.
func Steps() []Step { return []Step{Park, Head, Delete, Table, Oldest, Bury} }

// Fault is what goes wrong with a step.
type Fault string

// The faults.
const (
	// NotApplied: the step fails and has done nothing.
	NotApplied Fault = "not applied"
	// AnswerLost: the step has been done, but the answer says that it failed.
	AnswerLost Fault = "applied, but the answer was lost"
	// Full: the step is refused with [fallback.ErrFull].
	Full Fault = "full"
)

// ErrFault is the error of a step that goes wrong.
var ErrFault = errors.New("the queue fails on purpose")

// Faulty is a queue around another that fails where it is told to. The zero
// fields fail nothing.
type Faulty struct {
	fallback.Queue

	mu     sync.Mutex // guards all below
	faults map[Step][]Fault
	always map[Step]Fault
	count  map[Step]int
}

// NewFaulty returns a queue that fails nothing yet.
func NewFaulty(q fallback.Queue) *Faulty {
	return &Faulty{Queue: q, faults: map[Step][]Fault{}, always: map[Step]Fault{}, count: map[Step]int{}}
}

// Fail makes the next steps of a kind fail, one after the other.
func (f *Faulty) Fail(s Step, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[s] = append(f.faults[s], faults...)
}

// FailAlways makes all steps of a kind fail from now on; "" ends that.
func (f *Faulty) FailAlways(s Step, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always[s] = fault
}

// Count returns how many steps of a kind were asked for.
func (f *Faulty) Count(s Step) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[s]
}

func (f *Faulty) next(s Step) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[s]++
	if fault := f.always[s]; fault != "" {
		return fault
	}
	if len(f.faults[s]) == 0 {
		return ""
	}
	fault := f.faults[s][0]
	f.faults[s] = f.faults[s][1:]
	return fault
}

// before returns the error of a step that is not to be done.
func before(fault Fault) error {
	switch fault {
	case NotApplied:
		return ErrFault
	case Full:
		return fallback.ErrFull
	}
	return nil
}

// after returns the error that takes the place of an answer.
func after(fault Fault, err error) error {
	if fault == AnswerLost {
		return ErrFault
	}
	return err
}

// Park implements [fallback.Queue].
func (f *Faulty) Park(t router.Trigger, reason fallback.Reason, done func(uint64, error)) {
	fault := f.next(Park)
	if err := before(fault); err != nil {
		done(0, err)
		return
	}
	f.Queue.Park(t, reason, func(seq uint64, err error) {
		if err = after(fault, err); err != nil && !errors.Is(err, fallback.ErrDuplicate) {
			seq = 0
		}
		done(seq, err)
	})
}

// Head implements [fallback.Queue].
func (f *Faulty) Head(ctx context.Context, s fallback.Slot, from uint64) (fallback.Item, bool, error) {
	if fault := f.next(Head); fault != "" {
		return fallback.Item{}, false, ErrFault
	}
	return f.Queue.Head(ctx, s, from)
}

// Delete implements [fallback.Queue].
func (f *Faulty) Delete(ctx context.Context, seq uint64) error {
	fault := f.next(Delete)
	if err := before(fault); err != nil {
		return err
	}
	return after(fault, f.Queue.Delete(ctx, seq))
}

// Table implements [fallback.Queue].
func (f *Faulty) Table(ctx context.Context, partition int) (map[fallback.Slot]int, error) {
	if fault := f.next(Table); fault != "" {
		return nil, ErrFault
	}
	return f.Queue.Table(ctx, partition)
}

// Oldest implements [fallback.Queue].
func (f *Faulty) Oldest(ctx context.Context) (fallback.Item, bool, error) {
	if fault := f.next(Oldest); fault != "" {
		return fallback.Item{}, false, ErrFault
	}
	return f.Queue.Oldest(ctx)
}

// Bury implements [fallback.Queue].
func (f *Faulty) Bury(ctx context.Context, d fallback.DeadLetter) error {
	fault := f.next(Bury)
	if err := before(fault); err != nil {
		return err
	}
	return after(fault, f.Queue.Bury(ctx, d))
}

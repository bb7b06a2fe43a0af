package jetqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/tripline/tripline/fallback"
)

// getTries is how often a head that should be there is asked for.
const getTries = 3

// errContradiction says that a stream's count and its content differ.
var errContradiction = errors.New("the server counts triggers that it doesn't find: try again, and look at its log if that lasts")

// Head implements [fallback.Queue].
func (q *Queue) Head(ctx context.Context, slot fallback.Slot, after uint64) (fallback.Item, bool, error) {
	const doing = "read the oldest parked trigger of a slot"
	subject := q.parked.subject(slot)
	for range getTries {
		m, err := q.get(ctx, q.parked.name, getRequest{Seq: after + 1, Next: subject})
		if err != nil {
			return fallback.Item{}, false, q.explain(q.parked.name, doing, err)
		}
		if m != nil {
			return q.item(m)
		}
		empty, err := q.noneAfter(ctx, subject, after)
		if err != nil {
			return fallback.Item{}, false, q.explain(q.parked.name, doing, err)
		}
		if empty {
			return fallback.Item{}, false, nil
		}
	}
	return fallback.Item{}, false, q.explain(q.parked.name, doing, errContradiction)
}

// noneAfter decides a "not found": it is believed only if the stream counts no
// message of the subject, or if the last of those that it counts comes before.
func (q *Queue) noneAfter(ctx context.Context, subject string, after uint64) (bool, error) {
	state, err := q.info(ctx, q.parked.name, subject)
	if err != nil {
		return false, err
	}
	if state.Subjects[subject] == 0 {
		return true, nil
	}
	if after == 0 {
		return false, nil
	}
	last, err := q.get(ctx, q.parked.name, getRequest{Last: subject})
	if err != nil {
		return false, err
	}
	return last != nil && last.Seq <= after, nil
}

// Oldest implements [fallback.Queue].
func (q *Queue) Oldest(ctx context.Context) (fallback.Item, bool, error) {
	const doing = "read the oldest parked trigger"
	for range getTries {
		m, err := q.get(ctx, q.parked.name, getRequest{Seq: 1, Next: q.parked.prefix + "*.*"})
		if err != nil {
			return fallback.Item{}, false, q.explain(q.parked.name, doing, err)
		}
		if m != nil {
			return q.item(m)
		}
		state, err := q.info(ctx, q.parked.name, "")
		if err != nil {
			return fallback.Item{}, false, q.explain(q.parked.name, doing, err)
		}
		if state.Messages == 0 {
			return fallback.Item{}, false, nil
		}
	}
	return fallback.Item{}, false, q.explain(q.parked.name, doing, errContradiction)
}

func (q *Queue) item(m *stored) (fallback.Item, bool, error) {
	it, err := m.item(q.parked.prefix)
	if err != nil {
		return it, false, unreadable(q.parked.name, m.Seq, err)
	}
	return it, true, nil
}

// unreadable says that a message isn't ours to read, and how to get past it.
func unreadable(stream string, seq uint64, err error) error {
	return fmt.Errorf("message %d of stream %s is no trigger of Tripline's: %w: remove it with `nats stream rmm %s %d`",
		seq, stream, err, stream, seq)
}

// Table implements [fallback.Queue].
func (q *Queue) Table(ctx context.Context, partition int) (map[fallback.Slot]int, error) {
	const doing = "count the parked triggers"
	filter := fmt.Sprintf("%s%d.*", q.parked.prefix, partition)
	state, err := q.info(ctx, q.parked.name, filter)
	if err != nil {
		return nil, q.explain(q.parked.name, doing, err)
	}
	table := make(map[fallback.Slot]int, len(state.Subjects))
	for subject, n := range state.Subjects {
		slot, err := parseSlot(subject, q.parked.prefix)
		if err != nil {
			return nil, q.explain(q.parked.name, doing, err)
		}
		table[slot] = int(n)
	}
	return table, nil
}

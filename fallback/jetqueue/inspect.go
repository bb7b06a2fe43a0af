package jetqueue

import (
	"context"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/tripline/tripline/fallback"
)

// Inspection is a look at what is stored of a consumer that is not at work
// here: its queue need not be open. It takes nothing and needs no Close. It
// implements [fallback.Inspector].
type Inspection struct{ q *Queue }

var _ fallback.Inspector = Inspection{}

// Inspect returns a look at a consumer's streams, which need not exist.
func Inspect(nc *nats.Conn, namespace, consumer string) Inspection {
	cfg := Config{Namespace: namespace, Consumer: consumer}.withDefaults()
	return Inspection{&Queue{
		cfg: cfg, nc: nc,
		parked: stream{StreamName(cfg.Namespace, consumer), parkedSubject(cfg.Namespace, consumer)},
		dead:   stream{DeadStreamName(cfg.Namespace), deadSubject(cfg.Namespace, consumer)},
	}}
}

// Items implements [fallback.Inspector].
func (i Inspection) Items(ctx context.Context, f fallback.Filter) iter.Seq2[fallback.Item, error] {
	return i.q.Items(ctx, f)
}

// Dead implements [fallback.Inspector].
func (i Inspection) Dead(ctx context.Context, f fallback.Filter) iter.Seq2[fallback.DeadLetter, error] {
	return i.q.Dead(ctx, f)
}

// DeleteDead implements [fallback.Inspector].
func (i Inspection) DeleteDead(ctx context.Context, seq uint64) error {
	return i.q.DeleteDead(ctx, seq)
}

// Delete removes a parked trigger for good; twice is no error. An outlet that
// is at work must be asked instead: it counts what is parked.
func (i Inspection) Delete(ctx context.Context, seq uint64) error { return i.q.Delete(ctx, seq) }

// Package quiet keeps a log readable while the same thing goes wrong a
// thousand times a second: a full disk must not be filled further by the lines
// that tell of it.
package quiet

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// burst lines of one kind pass within each window.
	burst = 3
	// window is how long further lines of a kind are only counted.
	window = 10 * time.Second
	// maxKinds bounds the memory: while so many are counted, further ones pass.
	maxKinds = 1000
	// repeated is the attribute that says how many lines a line stands for.
	repeated = "repeated"
)

// Handler passes records on to another handler. Of warnings and errors that
// differ only in numbers, [burst] pass within [window]; at its end the newest
// of the others follows, with their count as the attribute "repeated". Other
// levels pass as they are: they tell of steps, not of faults. It may be used
// by many goroutines.
type Handler struct {
	next   slog.Handler
	prefix string // what With and WithGroup add to the kind
	shared *counts
}

type counts struct {
	mu     sync.Mutex // guards kinds and what it leads to
	kinds  map[string]*kind
	closed bool
}

// kind is what is known of the lines that are the same but for their numbers.
type kind struct {
	passed int
	held   int
	newest slog.Record
	next   slog.Handler
	timer  *time.Timer // ends the window
}

// New puts a Handler before next.
func New(next slog.Handler) *Handler {
	return &Handler{next: next, shared: &counts{kinds: map[string]*kind{}}}
}

// Enabled implements [slog.Handler].
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(h.prefix)
	for _, a := range attrs {
		writeAttr(&b, a)
	}
	return &Handler{next: h.next.WithAttrs(attrs), prefix: b.String(), shared: h.shared}
}

// WithGroup implements [slog.Handler].
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{next: h.next.WithGroup(name), prefix: h.prefix + name + ".", shared: h.shared}
}

// Handle implements [slog.Handler].
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || !h.shared.hold(h, r) {
		return h.next.Handle(ctx, r)
	}
	return nil
}

// hold tells whether the record is only counted.
func (c *counts) hold(h *Handler, r slog.Record) bool {
	key := keyOf(h.prefix, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.kinds[key]
	switch {
	case c.closed, !known && len(c.kinds) >= maxKinds:
		return false
	case !known:
		k = &kind{timer: time.AfterFunc(window, func() { c.end(key) })}
		c.kinds[key] = k
	}
	if k.passed < burst {
		k.passed++
		return false
	}
	k.held++
	k.newest, k.next = r.Clone(), h.next
	return true
}

// end writes what a window has held back. While there was anything, the next
// window begins with nothing left to pass, so that a lasting fault costs one
// line for each.
func (c *counts) end(key string) {
	c.mu.Lock()
	k := c.kinds[key]
	if k == nil {
		c.mu.Unlock()
		return
	}
	if k.held == 0 || c.closed {
		delete(c.kinds, key)
	} else {
		k.timer.Reset(window)
	}
	line := k.take()
	c.mu.Unlock()
	line()
}

// take returns what writes the held lines as one. The caller holds the lock;
// what is returned is called without it.
func (k *kind) take() func() {
	if k.held == 0 {
		return func() {}
	}
	r, next := k.newest, k.next
	r.AddAttrs(slog.Int(repeated, k.held))
	k.held = 0
	return func() { _ = next.Handle(context.Background(), r) }
}

// Close writes what is still held back. Afterwards everything passes.
func (h *Handler) Close() {
	c := h.shared
	c.mu.Lock()
	var lines []func()
	for _, k := range c.kinds {
		k.timer.Stop()
		lines = append(lines, k.take())
	}
	c.closed = true
	clear(c.kinds)
	c.mu.Unlock()
	for _, line := range lines {
		line()
	}
}

// keyOf is the record's text without its numbers. A consumer's name stays
// whole: hook-1 and hook-2 are not the same.
func keyOf(prefix string, r slog.Record) string {
	var b strings.Builder
	b.WriteString(prefix)
	b.WriteString(r.Level.String())
	b.WriteByte(' ')
	writeText(&b, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, a)
		return true
	})
	return b.String()
}

func writeAttr(b *strings.Builder, a slog.Attr) {
	b.WriteByte(' ')
	b.WriteString(a.Key)
	b.WriteByte('=')
	switch v := a.Value.Resolve(); {
	case a.Key == "consumer":
		b.WriteString(v.String())
	case v.Kind() == slog.KindString, v.Kind() == slog.KindAny, v.Kind() == slog.KindGroup, v.Kind() == slog.KindBool:
		writeText(b, v.String())
	}
}

// writeText writes a text with each number in it, such as a port, as one #.
func writeText(b *strings.Builder, text string) {
	number := false
	for i := range len(text) {
		digit := '0' <= text[i] && text[i] <= '9'
		switch {
		case !digit:
			b.WriteByte(text[i])
		case !number:
			b.WriteByte('#')
		}
		number = digit
	}
}

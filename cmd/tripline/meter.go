package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tripline/tripline/internal/tracks"
)

// meter shows how far a file has got: a bar on a terminal, else a line now
// and then.
type meter struct {
	out   io.Writer
	bar   *progressbar.ProgressBar // nil where there is no terminal
	rows  *tracks.Reader
	next  time.Time
	every time.Duration
}

func newMeter(s streams, r *tracks.Reader) *meter {
	m := &meter{out: s.err, rows: r, every: 5 * time.Second}
	if s.terminal {
		size := r.Size()
		if size == 0 {
			size = -1 // unknown: a spinner
		}
		m.every = 100 * time.Millisecond
		m.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(s.err), progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription("publishing"))
		m.bar.RenderBlank()
	}
	m.next = time.Now().Add(m.every)
	return m
}

// at is told how many fixes are acknowledged; it is cheap.
func (m *meter) at(fixes int) {
	if fixes%256 != 0 || time.Now().Before(m.next) {
		return
	}
	m.next = time.Now().Add(m.every)
	switch size := m.rows.Size(); {
	case m.bar != nil:
		m.bar.Describe(thousands(fixes) + " fixes")
		m.bar.Set64(m.rows.Consumed())
	case size > 0:
		fmt.Fprintf(m.out, "%s fixes, %d %%\n", thousands(fixes), 100*m.rows.Consumed()/size)
	default:
		fmt.Fprintf(m.out, "%s fixes\n", thousands(fixes))
	}
}

func (m *meter) done() {
	if m.bar != nil {
		m.bar.Finish()
	}
}

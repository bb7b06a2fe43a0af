package quiet_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripline/tripline/internal/quiet"
)

// book is a log whose lines can be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns what was written since the last call, without the times.
func (b *book) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.TrimSpace(b.text.String())
	b.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func open() (*quiet.Handler, *book) {
	b := &book{}
	return quiet.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})), b
}

func TestALastingFaultCostsOneLineForEachWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, written := open()
		defer h.Close()
		log := slog.New(h)
		for n := range 8333 { // 25 s, and none at the end of a window
			log.Warn("no answer", "consumer", "d", "partition", n%16, "err", fmt.Errorf("read 127.0.0.1:%d: reset", n))
			time.Sleep(3 * time.Millisecond)
		}
		synctest.Wait()
		got := written.lines()
		if len(got) != 5 {
			t.Fatalf("want 3 lines at once and one for each of 2 windows, got %d:\n%s", len(got), strings.Join(got, "\n"))
		}
		for n, line := range got {
			if strings.Contains(line, "repeated=") != (n >= 3) {
				t.Errorf("line %d: %s", n, line)
			}
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		rest := written.lines()
		if len(rest) != 1 || !strings.Contains(rest[0], "repeated=1666") {
			t.Fatalf("want the last 1666 as one line, got %q", rest)
		}
		log.Warn("no answer", "consumer", "d", "partition", 1, "err", errors.New("read 127.0.0.1:1: reset"))
		if again := written.lines(); len(again) != 1 || strings.Contains(again[0], "repeated") {
			t.Fatalf("after a calm window a line has to pass at once, got %q", again)
		}
	})
}

func TestWhatDiffersPasses(t *testing.T) {
	h, written := open()
	defer h.Close()
	log := slog.New(h)
	for range 3 {
		for n := range 20 {
			log.Info("an operator redrove a dead letter", "consumer", "d")
			log.Warn("breaker", "consumer", fmt.Sprint("hook-", n), "to", "open")
			log.With("connection", strings.Repeat("x", n)).Error("disconnected")
		}
	}
	if got := len(written.lines()); got != 180 {
		t.Errorf("got %d lines of 180", got)
	}
}

func TestCloseWritesWhatIsHeldBack(t *testing.T) {
	h, written := open()
	log := slog.New(h)
	for n := range 10 {
		log.Error("gone", "n", n)
	}
	h.Close()
	got := written.lines()
	if len(got) != 4 || !strings.Contains(got[3], "n=9 repeated=7") {
		t.Fatalf("got %q", got)
	}
	for range 10 {
		log.Error("gone")
	}
	if got := written.lines(); len(got) != 10 {
		t.Errorf("after Close everything passes, got %d of 10", len(got))
	}
}

func TestManyKindsAreBounded(t *testing.T) {
	h, written := open()
	defer h.Close()
	log := slog.New(h)
	for n := range 1200 {
		for range 4 {
			log.Warn("kind " + strings.Repeat("x", n))
		}
	}
	if got, want := len(written.lines()), 1000*3+200*4; got != want {
		t.Errorf("got %d lines, want %d", got, want)
	}
}

package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestDemoOnABusyPort(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	r := tripline(t, "", "demo", "--admin", busy.Addr().String())
	if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "--admin "+busy.Addr().String()+" can't be listened on: ") ||
		!strings.Contains(r.err, "address already in use") || strings.Contains(r.err, "admin.listen") {
		t.Errorf("got %+v", r)
	}
}

// head is a reader that has seen enough after some lines.
type head struct {
	bytes.Buffer
	lines int
}

func (h *head) Write(p []byte) (int, error) {
	if h.lines--; h.lines < 0 {
		return 0, io.ErrClosedPipe
	}
	return h.Buffer.Write(p)
}

// The demo ends when nobody reads it any more, and leaves nothing behind.
func TestDemoThatNobodyReadsEnds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	out, errs := &head{lines: 2}, &bytes.Buffer{}
	done := make(chan int, 1)
	go func() {
		done <- run(streams{ctx: t.Context(), in: strings.NewReader(""), out: out, err: errs}, []string{"demo"})
	}()
	select {
	case code := <-done:
		if code != exitOK || errs.Len() > 0 || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

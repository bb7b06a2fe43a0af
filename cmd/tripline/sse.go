package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxEvent bounds one line of a stream, in bytes.
	maxEvent = 8 << 20
	// silence ends a stream: the service says something every 15 s.
	silence = 40 * time.Second
	// Pauses before the next try to connect.
	againFirst, againMost = 500 * time.Millisecond, 10 * time.Second
)

// follow reads the service's live stream and hands over each event, until ctx
// ends or event returns an error. A broken stream is told once and connected
// anew; what happened meanwhile is missed. Only the first connection must
// succeed.
func (s *service) follow(ctx context.Context, told io.Writer, event func(name string, data []byte) error) error {
	pause := againFirst
	for first := true; ; first = false {
		got, err := s.stream(ctx, event)
		switch failed, isEvent := err.(eventError); {
		case ctx.Err() != nil:
			return nil
		case isEvent:
			return failed.error
		case first && !got:
			return err
		}
		if got {
			fmt.Fprintf(told, "tripline: the stream broke (%v); connecting anew\n", err)
			pause = againFirst
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, againMost)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// eventError is what the receiver of events returned.
type eventError struct{ error }

// stream reads one connection to its end; got says whether anything came.
func (s *service) stream(ctx context.Context, event func(string, []byte) error) (got bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.open(ctx, request{method: http.MethodGet, path: "/live"})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	name := ""
	for lines.Scan() {
		watchdog.Reset(silence)
		got = true
		line := lines.Text()
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			name = v
		} else if v, ok := strings.CutPrefix(line, "data: "); ok {
			if err := event(name, []byte(v)); err != nil {
				return true, eventError{err}
			}
		}
	}
	if err = lines.Err(); err == nil {
		err = io.ErrUnexpectedEOF
	}
	return got, err
}

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tripline/tripline/internal/answer"
	"github.com/tripline/tripline/router"
)

const (
	// maxBody is how much of an answer's body is read. One that is longer
	// costs its connection, not the delivery.
	maxBody = 64 << 10
	// maxHead is how much of a refusal's body is looked at, and maxExcerpt how
	// much of it goes into the error.
	maxHead, maxExcerpt = 4 << 10, 200
)

// judge turns an answer into the outcome of the attempt, and closes it.
func (s *Sink) judge(ctx context.Context, resp *http.Response) error {
	defer resp.Body.Close()
	status := resp.StatusCode
	if status >= 200 && status <= 299 {
		if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)); err != nil {
			// The answer was cut off, or dripped beyond the deadline. The
			// consumer may have taken the trigger; asking again is safe.
			return s.failed(router.Failed, status, inWords(ctx, err, "answer not complete"))
		}
		return nil
	}
	// Here the status alone decides, so the body may end as it likes. More is
	// read than is shown, so that no secret is cut in two before it is
	// recognised.
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxHead))
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody-maxHead))
	}
	d := s.failed(answer.Cause(status), status, refusal(status, s.redact.Text(string(head))))
	if answer.HasRetryAfter(d.Cause) {
		d.RetryAfter = answer.RetryAfter(resp.Header.Get("Retry-After"), resp.Header.Get("Date"),
			s.now(), s.cfg.MaxRetryAfter)
	}
	return d
}

// refusal says in words what a status outside 2xx came with.
func refusal(status int, body string) error {
	what := http.StatusText(status)
	switch {
	case status >= 300 && status <= 399:
		what = "a redirect, which is not followed: set url to where the consumer is"
	case what == "":
		what = "an unknown status"
	}
	if text := printable(body[:min(len(body), maxExcerpt)]); text != "" {
		return fmt.Errorf("%s: %s", what, text)
	}
	return errors.New(what)
}

// printable makes an excerpt fit for one line of a log.
func printable(s string) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

// inWords says that a deadline ended an attempt, where one did, and how far
// the attempt had come.
func inWords(ctx context.Context, err error, reached string) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s in time: %w", reached, context.DeadlineExceeded)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// phase is how far an attempt has come. The transport's goroutines write it.
type phase struct{ atomic.Int32 }

const (
	connecting int32 = iota
	connected
	sent
)

// trace has p follow the request that is made with the context.
func (p *phase) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { p.Store(connected) },
		WroteRequest: func(httptrace.WroteRequestInfo) { p.Store(sent) },
	})
}

// String says what was still missing.
func (p *phase) String() string {
	switch p.Load() {
	case connecting:
		return "no connection"
	case connected:
		return "request not taken"
	}
	return "no answer"
}

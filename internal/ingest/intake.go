package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

// Headers of the messages that ingest writes.
const (
	// replyHeader carries the reply subject of a submit request through the
	// stream, which does not store a message's own.
	replyHeader = "Tripline-Reply"

	// On <namespace>.rejected.<reason>: what was wrong, and where the
	// location came from.
	DetailHeader   = "Tripline-Detail"
	SubjectHeader  = "Tripline-Subject"
	SequenceHeader = "Tripline-Sequence"
	// TruncatedHeader says how many bytes the payload had, if it is too large
	// to be passed on whole.
	TruncatedHeader = "Tripline-Truncated"

	traceHeader = "traceparent"
)

// intake is what both modes do with a message once they have it.
type intake struct {
	nc         *nats.Conn
	patterns   *Patterns
	hooks      Hooks
	tickPrefix string
	listening  chan struct{} // closed by Run
}

// Listening is closed once Run has subscribed and the server knows: from then
// on what is sent is heard.
func (in *intake) Listening() <-chan struct{} { return in.listening }

// heard makes sure that the server knows of the subscriptions.
func (in *intake) heard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	if err := in.nc.FlushWithContext(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, nats.ErrConnectionReconnecting) {
		return fmt.Errorf("subscribing: %w", err)
	}
	close(in.listening) // a connection that is away at the moment subscribes when it is back
	return nil
}

func newIntake(cfg Config) intake {
	return intake{
		nc:         cfg.Conn,
		patterns:   cfg.Patterns,
		hooks:      cfg.Hooks,
		tickPrefix: cfg.Patterns.namespace + ".tick.",
		listening:  make(chan struct{}),
	}
}

// fill makes a message of what arrived on a subject. The caller has set its
// Seq and Stored, and its Reply where there is one.
func (in *intake) fill(m *router.Message, subject string, data []byte, header nats.Header) {
	if strings.HasPrefix(subject, in.tickPrefix) {
		m.Kind = router.TickMessage
		m.Nonce = string(data)
		return
	}
	if header != nil {
		m.Traceparent = traceparent(header)
	}
	err := in.decode(m, subject, data)
	if err == nil {
		m.Kind = router.FixMessage
		return
	}
	m.Kind = router.RefusedMessage
	in.turnDown(m, subject, data, err)
}

func (in *intake) decode(m *router.Message, subject string, data []byte) error {
	device, err := in.patterns.Device(subject)
	if err != nil {
		return err
	}
	m.Fix.Device, m.Fix.Stored, m.Fix.Seq = device, m.Stored, m.Seq
	return Decode(data, &m.Fix)
}

// turnDown counts what is no fix, says so to whoever submitted it, and passes
// a refused one on for somebody to look at.
func (in *intake) turnDown(m *router.Message, subject string, data []byte, err error) {
	if m.Reply != "" {
		in.Answer(m.Reply, answerOf(err))
	}
	if errors.Is(err, ErrIgnored) {
		in.hooks.ignored()
		return
	}
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		r = refuse(Malformed, "%v", err)
	}
	in.hooks.refused(r.Reason)
	in.reject(subject, data, r, m.Seq)
}

// Reject publishes a location that could be read, and was refused when it was
// judged. The payload is what counted of it.
func (in *intake) Reject(fix *geofence.Fix, r *Refusal) {
	subject, err := in.patterns.Subject(fix.Device)
	if err != nil {
		return // it came under a subject, so there is one
	}
	data := fmt.Appendf(nil, `{"lat":%v,"lon":%v,"ts":%d}`, fix.Lat, fix.Lon, fix.TS)
	in.reject(subject, data, r, fix.Seq)
}

// reject publishes a refused location. It is a courtesy: nobody may listen,
// and with NATS away it is dropped.
func (in *intake) reject(subject string, data []byte, r *Refusal, seq uint64) {
	msg := nats.NewMsg(in.patterns.namespace + ".rejected." + string(r.Reason))
	msg.Header[DetailHeader] = []string{oneLine(r.Detail)}
	msg.Header[SubjectHeader] = []string{oneLine(subject)}
	if seq != 0 {
		msg.Header[SequenceHeader] = []string{strconv.FormatUint(seq, 10)}
	}
	if len(data) > MaxPayload {
		msg.Header[TruncatedHeader] = []string{strconv.Itoa(len(data))}
		data = data[:MaxPayload]
	}
	msg.Data = data
	_ = in.nc.PublishMsg(msg)
}

// oneLine makes a text fit for a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Answer answers a submit request, without waiting. If NATS is away the
// answer is dropped, and the request times out.
func (in *intake) Answer(reply string, a router.Answer) {
	if reply == "" {
		return
	}
	data, err := json.Marshal(a)
	if err != nil {
		return // an Answer has nothing in it that can't be encoded
	}
	_ = in.nc.Publish(reply, data)
}

func answerOf(err error) router.Answer {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return router.Answer{Reason: string(r.Reason), Error: r.Detail}
	}
	return router.Answer{Reason: "ignored", Error: err.Error()}
}

// replyOf is the reply subject of a message if it may be answered, else "".
func (in *intake) replyOf(msg *nats.Msg) string {
	if in.answerable(msg.Reply) {
		return msg.Reply
	}
	return ""
}

// answerable holds what a message says is a reply subject to what one looks
// like: whoever may publish locations must not make the router speak on
// subjects of its own, of NATS, or on those it listens to.
func (in *intake) answerable(reply string) bool {
	if reply == "" || strings.HasPrefix(reply, "$") || strings.HasPrefix(reply, in.patterns.namespace+".") ||
		strings.ContainsAny(reply, "*> \t\r\n") {
		return false
	}
	for i := range in.patterns.list {
		if _, ok := in.patterns.list[i].device(reply); ok {
			return false
		}
	}
	return true
}

// traceparent returns the W3C trace context of a message, or "" if there is
// none that is well-formed.
func traceparent(h nats.Header) string {
	values := h[traceHeader]
	if len(values) == 0 {
		values = h["Traceparent"]
	}
	if len(values) == 0 {
		return ""
	}
	t := values[0] // version-traceid-parentid-flags
	if len(t) != 55 || t[2] != '-' || t[35] != '-' || t[52] != '-' {
		return ""
	}
	for i := range len(t) {
		if c := t[i]; i != 2 && i != 35 && i != 52 && !(isDigit(c) || 'a' <= c && c <= 'f') {
			return ""
		}
	}
	return t
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

const (
	// maxSubmits is how many submitted locations may be on their way to the
	// stream at once.
	maxSubmits = 1024
	// submitTimeout is how long one may take to be stored.
	submitTimeout = 5 * time.Second
	// heardWithin bounds the wait for the server to know a subscription.
	heardWithin = 5 * time.Second
)

// Run serves `<namespace>.submit.<device>` until ctx ends. Of several
// replicas one takes each request; the owner of the partition answers it.
func (d *Durable) Run(ctx context.Context) error {
	queue := d.patterns.namespace + "-submit"
	sub, err := d.nc.QueueSubscribe(d.submitPrefix()+">", queue, d.submit)
	if err != nil {
		return fmt.Errorf("subscribing to submits: %w", err)
	}
	if err := d.heard(ctx); err != nil {
		return errors.Join(err, unsubscribe(sub))
	}
	<-ctx.Done()
	return unsubscribe(sub)
}

func (in *intake) submitPrefix() string { return in.patterns.namespace + ".submit." }

// unsubscribe ends a subscription; that its connection is gone already is
// as good.
func unsubscribe(sub *nats.Subscription) error {
	err := sub.Unsubscribe()
	if err == nil || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return fmt.Errorf("unsubscribing from %s: %w", sub.Subject, err)
}

// submit checks a location and stores it. Whoever reads it back answers, so
// only what goes wrong before is answered here.
func (d *Durable) submit(msg *nats.Msg) {
	subject, err := d.validate(msg)
	if err != nil {
		m := router.Message{Reply: d.replyOf(msg)}
		d.turnDown(&m, msg.Subject, msg.Data, err)
		return
	}
	stored := &nats.Msg{Subject: subject, Data: msg.Data, Header: nats.Header{}}
	if reply := d.replyOf(msg); reply != "" {
		stored.Header[replyHeader] = []string{reply}
	}
	if t := traceparent(msg.Header); t != "" {
		stored.Header[traceHeader] = []string{t}
	}
	if _, err := d.js.PublishMsgAsync(stored); err != nil {
		d.submitFailed(d.js, stored, err)
	}
}

// validate decodes a submitted location and returns the subject that it is
// to be stored under.
func (in *intake) validate(msg *nats.Msg) (subject string, err error) {
	device := strings.TrimPrefix(msg.Subject, in.submitPrefix())
	if subject, err = in.patterns.Subject(device); err != nil {
		return "", err
	}
	fix := geofence.Fix{Device: device, Stored: time.Now().UnixMilli()}
	return subject, Decode(msg.Data, &fix)
}

// submitFailed answers a submit that the stream did not confirm. It may have
// been stored all the same: then it is answered a second time, to nobody.
func (d *Durable) submitFailed(_ jetstream.JetStream, msg *nats.Msg, err error) {
	var reply string
	if values := msg.Header[replyHeader]; len(values) > 0 {
		reply = values[0]
	}
	a := router.Answer{Reason: string(Unavailable), Error: fmt.Sprintf("storing the location: %v", err)}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == errCodeStreamFull {
		a.Reason = string(Full)
	}
	d.Answer(reply, a)
}

// errCodeStreamFull is how JetStream says that a stream has reached a limit
// and discards what is new.
const errCodeStreamFull = 10077

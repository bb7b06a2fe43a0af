package natssink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/natssink"
)

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// cause is that of a delivery's error.
func cause(t *testing.T, err error) router.DeliveryError {
	t.Helper()
	d, ok := errors.AsType[*router.DeliveryError](err)
	if !ok {
		t.Fatalf("%v is no DeliveryError", err)
	}
	return *d
}

func TestSubjectIsFilledInTokenByToken(t *testing.T) {
	s := natstest.Start(t)
	nc := s.Conn(t)
	sub, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		subject, device, fence, want string
	}{
		{"trips", "a", "b", "trips"},
		{"trips.{device}", "truck-7", "x", "trips.truck-7"},
		{"{namespace}.t.{consumer}.{transition}.{fence}.{device}", "alice.phone", "depot 7", "fleet.t.dispatch.enter.depot_7.alice_phone"},
		{"t.{device}", "a.*.>\t\x7fb", "", "t.a______b"},
		{"t.{fence}.x", "a", "", "t._.x"},
		{"t.pre{fence}post", "a", "zürich-北", "t.prezürich-北post"},
		{"t.{fence}", "a", strings.Repeat("é", 1000), "t." + strings.Repeat("é", 64)},
		{"t.{fence}", "a", "x\xff\xfey", "t.x_y"},
	} {
		sink := natssink.NewPublish(nc, natssink.Config{Subject: c.subject, Consumer: "dispatch", Namespace: "fleet"})
		if err := sink.Deliver(within(t, patience), trigger(c.device, c.fence)); err != nil {
			t.Errorf("%s: %v", c.subject, err)
			continue
		}
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != c.want {
			t.Errorf("%s for %q %q: %s, want %s", c.subject, c.device, c.fence, m.Subject, c.want)
		}
		if v := m.Header.Get("Content-Type"); v != "application/cloudevents+json" {
			t.Errorf("content type %q", v)
		}
		_ = sink.Close()
	}
}

func TestConfigIsChecked(t *testing.T) {
	for subject, want := range map[string]string{
		"":             "subject is missing",
		"a.*":          "wildcards",
		"a.>":          "wildcards",
		"a..b":         "empty token",
		".a":           "empty token",
		"a b":          "spaces",
		"$JS.API":      "begin with $ or _",
		"_INBOX.x":     "begin with $ or _",
		"a.{devcie}":   "{devcie}: the placeholders are",
		"a.{device":    "{device: the placeholders are",
		"a.{device}{}": "the placeholders are",
	} {
		if err := (natssink.Config{Subject: subject}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", subject, err, want)
		}
	}
	for want, cfg := range map[string]natssink.Config{
		"ping":            {Subject: "a", Ping: "a.*"},
		"timeout -1":      {Subject: "a", Timeout: -1},
		"max_retry_after": {Subject: "a", MaxRetryAfter: -1},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A reply with an error means what its code means of a webhook; the micro
// package of nats.go writes such replies.
func TestR9_RepliesMeanWhatTheySay(t *testing.T) {
	srv := natstest.Start(t)
	nc := srv.Conn(t)
	sink := natssink.NewRequest(srv.Conn(t), natssink.Config{Subject: "svc.{fence}"})
	var mu sync.Mutex
	var code, text, retryAfter string
	if _, err := micro.AddService(nc, micro.Config{
		Name: "consumer", Version: "1.0.0",
		Endpoint: &micro.EndpointConfig{
			Subject: "svc.*",
			Handler: micro.HandlerFunc(func(r micro.Request) {
				mu.Lock()
				defer mu.Unlock()
				if code == "" {
					_ = r.Respond([]byte("anything"))
					return
				}
				_ = r.Error(code, text, nil, micro.WithHeaders(micro.Headers{"Retry-After": {retryAfter}}))
			}),
		},
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code, retryAfter string
		cause            router.Cause
		status           int
		wait             time.Duration
		ok               bool
	}{
		{ok: true},
		{code: "400", cause: router.Rejected, status: 400},
		{code: "413", cause: router.Rejected, status: 413},
		{code: "415", cause: router.Rejected, status: 415},
		{code: "422", cause: router.Rejected, status: 422},
		{code: "410", cause: router.Gone, status: 410},
		{code: "429", retryAfter: "5", cause: router.Throttled, status: 429, wait: 5 * time.Second},
		{code: "503", retryAfter: "86400", cause: router.Unavailable, status: 503, wait: time.Hour},
		{code: "404", cause: router.Failed, status: 404},
		{code: "500", retryAfter: "5", cause: router.Failed, status: 500},
		{code: "E42", cause: router.Failed},
		{code: "70000", cause: router.Failed},
	} {
		mu.Lock()
		code, text, retryAfter = c.code, "the service's own words", c.retryAfter
		mu.Unlock()
		err := sink.Deliver(within(t, patience), trigger("a", "b"))
		if c.ok {
			if err != nil {
				t.Errorf("a reply without an error: %v", err)
			}
			continue
		}
		d := cause(t, err)
		if d.Cause != c.cause || d.Status != c.status || d.RetryAfter != c.wait {
			t.Errorf("code %s: cause %d status %d wait %v, want %d %d %v",
				c.code, d.Cause, d.Status, d.RetryAfter, c.cause, c.status, c.wait)
		}
		if !strings.Contains(err.Error(), "the service's own words") {
			t.Errorf("code %s: %v doesn't say why", c.code, err)
		}
	}
}

func TestNobodyServesARequest(t *testing.T) {
	srv := natstest.Start(t)
	sink := natssink.NewRequest(srv.Conn(t), natssink.Config{Subject: "svc"})
	begin := time.Now()
	err := sink.Deliver(within(t, patience), trigger("a", "b"))
	if d := cause(t, err); d.Cause != router.Failed || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("%v", err)
	}
	if time.Since(begin) > patience/2 {
		t.Error("waited for the deadline")
	}
}

func TestPingOfARequest(t *testing.T) {
	srv := natstest.Start(t)
	nc := srv.Conn(t)
	sink := natssink.NewRequest(srv.Conn(t), natssink.Config{Subject: "svc", Ping: "svc.ping"})
	if err := sink.Check(within(t, patience)); err == nil {
		t.Error("nobody is well")
	}
	sub, err := nc.Subscribe("svc.ping", func(m *nats.Msg) { _ = m.Respond(nil) })
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Flush()
	if err := sink.Check(within(t, patience)); err != nil {
		t.Error(err)
	}
	_ = sub.Unsubscribe()
	if _, err := nc.Subscribe("svc.ping", func(m *nats.Msg) {
		r := nats.NewMsg(m.Reply)
		r.Header.Set("Nats-Service-Error", "not today")
		_ = m.RespondMsg(r)
	}); err != nil {
		t.Fatal(err)
	}
	_ = nc.Flush()
	if err := sink.Check(within(t, patience)); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("a sick service: %v", err)
	}
	none := natssink.NewRequest(srv.Conn(t), natssink.Config{Subject: "svc"})
	if err := none.Check(t.Context()); !errors.Is(err, natssink.ErrNoHealth) {
		t.Error(err)
	}
}

// What NATS would drop without a word is a failure all the same.
func TestDeniedSubjectFails(t *testing.T) {
	denied := func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "own", Password: "own"},
			{Username: "sink", Password: "sink", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"ok.>"}},
			}},
		}
	}
	srv := natstest.Start(t, denied)
	nc := srv.Conn(t, nats.UserInfo("sink", "sink"))
	good := natssink.NewPublish(nc, natssink.Config{Subject: "ok.{device}"})
	bad := natssink.NewPublish(nc, natssink.Config{Subject: "secret.{device}"})
	ask := natssink.NewRequest(nc, natssink.Config{Subject: "secret.{device}", Timeout: time.Second})
	// Many at once, on subjects that differ: none passes for delivered.
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			if err := bad.Deliver(within(t, patience), trigger(fmt.Sprint("d", n), "b")); err == nil {
				t.Error("a denied publish passed for a delivery")
			}
		})
	}
	wg.Wait()
	for range 2 { // the second time the client already holds such an error
		for name, s := range map[string]router.Sink{"publish": bad, "request": ask} {
			err := s.Deliver(within(t, patience), trigger("a", "b"))
			if err == nil || !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s on a denied subject: %v", name, err)
			}
		}
		if err := good.Deliver(within(t, patience), trigger("a", "b")); err != nil {
			t.Errorf("an allowed subject: %v", err)
		}
	}
}

func TestTooLargeTriggerIsUnsent(t *testing.T) {
	srv := natstest.Start(t, func(o *server.Options) { o.MaxPayload = 1024 })
	nc := srv.Conn(t)
	tr := trigger("a", "b")
	tr.Body = make([]byte, 2048)
	for name, s := range map[string]router.Sink{
		"publish":   natssink.NewPublish(nc, natssink.Config{Subject: "x"}),
		"request":   natssink.NewRequest(nc, natssink.Config{Subject: "x"}),
		"jetstream": natssink.NewJetStream(nc, natssink.Config{Subject: "x"}),
	} {
		if d := cause(t, s.Deliver(within(t, patience), tr)); d.Cause != router.Unsent {
			t.Errorf("%s: cause %d, %v", name, d.Cause, d.Err)
		}
	}
}

func TestJetStreamAnswers(t *testing.T) {
	srv := natstest.Start(t)
	nc := srv.Conn(t)
	js, _ := jetstream.New(nc)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "OUT", Subjects: []string{"out.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew, MaxMsgSize: 1000,
	}); err != nil {
		t.Fatal(err)
	}
	deliver := func(cfg natssink.Config, tr router.Trigger) error {
		return natssink.NewJetStream(nc, cfg).Deliver(within(t, patience), tr)
	}
	big := trigger("a", "b")
	big.Body = make([]byte, 2000)
	if d := cause(t, deliver(natssink.Config{Subject: "out.x"}, big)); d.Cause != router.Rejected {
		t.Errorf("too large for the stream: %d %v", d.Cause, d.Err)
	}
	if d := cause(t, deliver(natssink.Config{Subject: "out.x", Stream: "OTHER"}, trigger("a", "b"))); d.Cause != router.Failed {
		t.Errorf("the wrong stream: %d %v", d.Cause, d.Err)
	}
	for range 2 { // a repeat is stored once, and is a delivery
		if err := deliver(natssink.Config{Subject: "out.x", Stream: "OUT"}, trigger("a", "b")); err != nil {
			t.Errorf("deliver: %v", err)
		}
	}
	next := trigger("a", "b")
	next.ID = "TRIGGER2"
	if d := cause(t, deliver(natssink.Config{Subject: "out.x"}, next)); d.Cause != router.Unavailable {
		t.Errorf("a full stream: %d %v", d.Cause, d.Err)
	}
	if d := cause(t, deliver(natssink.Config{Subject: "nowhere"}, next)); d.Cause != router.Failed ||
		!strings.Contains(d.Err.Error(), "no stream captures the subject") {
		t.Errorf("no stream: %d %v", d.Cause, d.Err)
	}
}

// While one flush is held up, the deliveries behind it share the next: the
// client sends far fewer pings than triggers.
func TestDeliveriesShareFlushes(t *testing.T) {
	r := newRig(t)
	r.subscribe(t, nil)
	s := natssink.NewPublish(r.sink, natssink.Config{Subject: "out.x"})
	t.Cleanup(func() { _ = s.Close() })
	const n = 200
	r.relay.Hold()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			tr := trigger("a", "b")
			tr.ID = fmt.Sprint(i)
			if err := s.Deliver(within(t, patience), tr); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, "all are published", func() bool { return r.sink.Stats().OutMsgs >= n })
	if got := s.Flushes(); got > 2 {
		t.Errorf("%d flushes began while the first was held up", got)
	}
	r.relay.Release()
	wg.Wait()
	waitFor(t, "all have arrived", func() bool { return len(r.received()) == n })
	if got := s.Flushes(); got > n/10 {
		t.Errorf("%d flushes for %d deliveries at once", got, n)
	}
}

// A delivery that gives up early does not take the others' flush with it.
func TestImpatientDeliveryHarmsNoOther(t *testing.T) {
	r := newRig(t)
	r.subscribe(t, nil)
	s := natssink.NewPublish(r.sink, natssink.Config{Subject: "out.x"})
	t.Cleanup(func() { _ = s.Close() })
	r.relay.Hold()
	results := make(chan error, 2)
	deliver := func() { results <- s.Deliver(within(t, patience), trigger("c", "d")) }
	go deliver()
	waitFor(t, "the first flush is under way", func() bool { return s.Flushes() == 1 })
	// The impatient one is the first to wait for the second flush.
	if err := s.Deliver(within(t, 50*time.Millisecond), trigger("a", "b")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one: %v", err)
	}
	go deliver()
	waitFor(t, "all are published", func() bool { return r.sink.Stats().OutMsgs == 3 })
	r.relay.Release()
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a patient one: %v", err)
		}
	}
}

// R5: one call is one message, whatever the client would do by itself: no
// buffering while the connection is away, no retry without a stream.
func TestR5_OneCallIsOneMessage(t *testing.T) {
	srv := natstest.Start(t)
	nc := srv.Conn(t) // with the client's ordinary buffer
	js := natssink.NewJetStream(nc, natssink.Config{Subject: "nowhere"})
	before := nc.Stats().OutMsgs
	if err := js.Deliver(within(t, patience), trigger("a", "b")); err == nil {
		t.Error("delivered to no stream")
	}
	if n := nc.Stats().OutMsgs - before; n != 1 {
		t.Errorf("%d messages without a stream", n)
	}
	srv.Stop()
	waitFor(t, "the client notices", func() bool { return !nc.IsConnected() })
	before = nc.Stats().OutMsgs
	for name, s := range map[string]router.Sink{
		"publish":   natssink.NewPublish(nc, natssink.Config{Subject: "x"}),
		"request":   natssink.NewRequest(nc, natssink.Config{Subject: "x"}),
		"jetstream": js,
	} {
		if err := s.Deliver(within(t, patience), trigger("a", "b")); err == nil || !strings.Contains(err.Error(), "no connection to NATS") {
			t.Errorf("%s without a server: %v", name, err)
		}
	}
	if n := nc.Stats().OutMsgs - before; n != 0 {
		t.Errorf("%d messages were buffered", n)
	}
}

func BenchmarkPublish(b *testing.B) {
	srv := natstest.Start(b)
	s := natssink.NewPublish(srv.Conn(b), natssink.Config{Subject: "out.{device}.{transition}"})
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Deliver(b.Context(), trigger("truck.7", "depot")); err != nil {
				b.Error(err)
				return
			}
		}
	})
	_ = s.Close()
}

package natsconn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/natstest"
)

// What a server refuses for its limits comes with what to do about it.
func TestLimitsOfAnAccountAreExplained(t *testing.T) {
	srv := natstest.Start(t)
	limits := func(store, streamBytes int64, streams int) {
		t.Helper()
		account, err := srv.Nats().LookupAccount(server.DEFAULT_GLOBAL_ACCOUNT)
		if err != nil {
			t.Fatal(err)
		}
		if err := account.UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": {
			MaxMemory: -1, MaxStore: store, MaxStreams: streams, MaxConsumers: -1,
			MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: streamBytes,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	js := srv.JetStream(t)
	create := func(name string, replicas int) error {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}, MaxBytes: 1 << 20, Replicas: replicas})
		return natsconn.Explain(err)
	}
	for _, tt := range []struct {
		store, streamBytes int64
		streams, replicas  int
		want               string
	}{
		{-1, -1, 1, 1, "raise the account's limit of streams"},
		{1 << 20, -1, -1, 1, "raise the account's storage limit (max_file)"},
		{-1, 1000, -1, 1, "how large a stream may be (max_stream_bytes)"},
		{-1, -1, -1, 3, "nats.replicas needs a cluster"},
	} {
		limits(-1, -1, -1)
		if err := create("first", 1); err != nil {
			t.Fatal(err)
		}
		limits(tt.store, tt.streamBytes, tt.streams)
		err := create("second", tt.replicas)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "nats:") {
			t.Errorf("got %v; want %q", err, tt.want)
		}
		if _, ok := errors.AsType[*jetstream.APIError](err); !ok {
			t.Errorf("the cause is gone from %v", err)
		}
	}
}

func TestAnEmptyBufferIsAConnectionThatIsAway(t *testing.T) {
	srv := natstest.Start(t)
	nc, err := natsconn.DialOnce(natsconn.Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	away := nc.StatusChanged(nats.RECONNECTING)
	srv.Stop()
	<-away
	err = natsconn.Explain(fmt.Errorf("storing a tick: %w", nc.Publish("x", nil)))
	if want := "storing a tick: NATS is not connected at the moment: see that its server runs and can be reached"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Error("the cause is gone")
	}
}

func TestOtherErrorsStayAsTheyAre(t *testing.T) {
	for _, err := range []error{nil, errors.New("something else"), nats.ErrTimeout} {
		if got := natsconn.Explain(err); got != err {
			t.Errorf("got %v, want %v", got, err)
		}
	}
}

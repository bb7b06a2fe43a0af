package natstest_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRestartKeepsTheStoreAndTheURL(t *testing.T) {
	s := natstest.Start(t)
	js := s.JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s.1", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	url := s.URL

	connected := js.Conn().StatusChanged(nats.CONNECTED)
	s.Restart(t)
	if s.URL != url {
		t.Fatalf("URL was %s, is %s", url, s.URL)
	}
	for deadline := time.Now().Add(10 * time.Second); !js.Conn().IsConnected(); {
		if time.Now().After(deadline) {
			t.Fatal("the connection did not come back")
		}
		select {
		case <-connected:
		case <-time.After(100 * time.Millisecond):
		}
	}
	st, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := st.GetMsg(t.Context(), 1)
	if err != nil || string(msg.Data) != "kept" {
		t.Fatalf("got %v, %v", msg, err)
	}
}

package natsconn_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/natsconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func embedded(t testing.TB, cfg natsconn.EmbeddedConfig) *natsconn.Embedded {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	e, err := natsconn.StartEmbedded(t.Context(), cfg, discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	return e
}

func dialEmbedded(t testing.TB, e *natsconn.Embedded, hooks natsconn.Hooks) *nats.Conn {
	t.Helper()
	nc, err := e.Dial(t.Context(), discard(), hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func TestEmbeddedServesThisProcessAndOthers(t *testing.T) {
	e := embedded(t, natsconn.EmbeddedConfig{Listen: "127.0.0.1:0", Instance: "one"})
	inside := dialEmbedded(t, e, natsconn.Hooks{})
	if err := natsconn.Check(t.Context(), inside); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := e.Healthy(); err != nil {
		t.Error(err)
	}
	outside, err := natsconn.Dial(t.Context(), natsconn.Config{URL: e.URL()}, discard(), natsconn.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if _, err := inside.Subscribe("ping", func(m *nats.Msg) { _ = m.Respond([]byte("pong")) }); err != nil {
		t.Fatal(err)
	}
	if err := inside.Flush(); err != nil {
		t.Fatal(err)
	}
	if reply, err := outside.Request("ping", nil, patience); err != nil || string(reply.Data) != "pong" {
		t.Fatalf("got %v, %v", reply, err)
	}
	if name := inside.Opts.Name; name != "tripline/one" {
		t.Errorf("the connection is called %q", name)
	}
}

func TestEmbeddedRestartKeepsWhatIsStoredAndConnectionsComeBack(t *testing.T) {
	e := embedded(t, natsconn.EmbeddedConfig{Listen: "127.0.0.1:0"})
	back, away := make(chan struct{}, 1), make(chan error, 1)
	nc := dialEmbedded(t, e, natsconn.Hooks{
		Disconnected: func(err error) { away <- err },
		Reconnected:  func() { back <- struct{}{} },
	})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	url := e.URL()
	if err := e.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []func(){func() { <-away }, func() { <-back }} {
		c()
	}
	if e.URL() != url {
		t.Errorf("it was at %s and is at %s", url, e.URL())
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := stream.GetMsg(t.Context(), 1); err != nil || string(msg.Data) != "kept" {
		t.Fatalf("got %v, %v", msg, err)
	}
}

func TestEmbeddedFailsToPublishAtOnceWhileItIsDown(t *testing.T) {
	e := embedded(t, natsconn.EmbeddedConfig{})
	away := make(chan error, 1)
	nc := dialEmbedded(t, e, natsconn.Hooks{Disconnected: func(err error) { away <- err }})
	e.Shutdown()
	<-away
	if err := nc.Publish("s", nil); err == nil {
		t.Error("a publish was buffered")
	}
	e.Shutdown() // twice does nothing
	if err := e.Restart(t.Context()); err == nil {
		t.Error("it was restarted after its shutdown")
	}
	if e.Healthy() == nil || e.URL() != "" || e.Server() != nil {
		t.Error("it looks alive")
	}
}

func TestEmbeddedSaysWhatIsInTheWay(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	dir := filepath.Join(t.TempDir(), "used")
	if _, err := natsconn.StartEmbedded(t.Context(), natsconn.EmbeddedConfig{Dir: dir, MaxStore: -1}, discard()); err == nil {
		t.Error("a negative max_store was taken")
	}
	embedded(t, natsconn.EmbeddedConfig{Dir: dir})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "jetstream"), []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := os.WriteFile(filepath.Join(kept, "max_store"), []byte("lots"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		cfg  natsconn.EmbeddedConfig
		want []string
	}{
		{"a port in use", natsconn.EmbeddedConfig{Listen: address}, []string{address + " is in use", "nats.listen"}},
		{"an MQTT port in use", natsconn.EmbeddedConfig{MQTT: address}, []string{address + " is in use", "set nats.mqtt_listen to"}},
		{"a store in use", natsconn.EmbeddedConfig{Dir: dir}, []string{"in use by another process", fmt.Sprint("pid ", os.Getpid()), "another directory"}},
		{"a store that is a file", natsconn.EmbeddedConfig{Dir: file}, []string{"nats store", "can be written to"}},
		{"a store with a file in it where a directory should be", natsconn.EmbeddedConfig{Dir: broken}, []string{"embedded nats-server"}},
		{"a kept size that is none", natsconn.EmbeddedConfig{Dir: kept}, []string{"max_store has to hold a number"}},
		{"no address", natsconn.EmbeddedConfig{Listen: "4222"}, []string{"nats.listen", "host:port"}},
		{"open to everybody", natsconn.EmbeddedConfig{Listen: "0.0.0.0:0"}, []string{"reachable from other machines", "nats.user"}},
		{"open to everybody by default", natsconn.EmbeddedConfig{Listen: ":0"}, []string{"reachable from other machines"}},
		{"MQTT open to everybody", natsconn.EmbeddedConfig{MQTT: "[::]:0"}, []string{"nats.mqtt_listen", "nats.user"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.cfg.Dir == "" {
				tc.cfg.Dir = t.TempDir()
			}
			e, err := natsconn.StartEmbedded(t.Context(), tc.cfg, discard())
			if err == nil {
				e.Shutdown()
				t.Fatal("it started")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestEmbeddedLetsGoOfItsStore(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		e, err := natsconn.StartEmbedded(t.Context(), natsconn.EmbeddedConfig{Dir: dir}, discard())
		if err != nil {
			t.Fatal(err)
		}
		e.Shutdown()
	}
	if _, err := natsconn.StartEmbedded(t.Context(), natsconn.EmbeddedConfig{Dir: dir, Listen: "x"}, discard()); err == nil {
		t.Fatal("it started")
	}
	embedded(t, natsconn.EmbeddedConfig{Dir: dir}) // a failed start let go as well
}

func TestEmbeddedKeepsTheSizeOfItsFirstStart(t *testing.T) {
	dir := t.TempDir()
	e := embedded(t, natsconn.EmbeddedConfig{Dir: dir})
	first := e.MaxStore()
	if first <= 0 {
		t.Fatalf("max_store %d", first)
	}
	e.Shutdown()
	if err := os.WriteFile(filepath.Join(dir, "max_store"), []byte("123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e = embedded(t, natsconn.EmbeddedConfig{Dir: dir})
	if e.MaxStore() != 123456789 {
		t.Errorf("max_store %d, want what was kept", e.MaxStore())
	}
	e.Shutdown()
	e = embedded(t, natsconn.EmbeddedConfig{Dir: dir, MaxStore: 1 << 30})
	if e.MaxStore() != 1<<30 {
		t.Errorf("max_store %d, want what is configured", e.MaxStore())
	}
}

func TestEmbeddedAsksForCredentialsWhereItHasAny(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  natsconn.EmbeddedConfig
		good natsconn.Config
	}{
		{"user", natsconn.EmbeddedConfig{User: "u", Password: "p"}, natsconn.Config{User: "u", Password: "p"}},
		{"token", natsconn.EmbeddedConfig{Token: "t0ken"}, natsconn.Config{Token: "t0ken"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.Listen = "0.0.0.0:0"
			e := embedded(t, tc.cfg)
			dialEmbedded(t, e, natsconn.Hooks{})
			tc.good.URL = e.URL()
			nc, err := natsconn.Dial(t.Context(), tc.good, discard(), natsconn.Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			nc.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err = natsconn.Dial(ctx, natsconn.Config{URL: e.URL()}, discard(), natsconn.Hooks{})
			if err == nil || !strings.Contains(err.Error(), "refused the connection") || ctx.Err() != nil {
				t.Errorf("without credentials: got %v", err)
			}
		})
	}
}

package natsconn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/natstest"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestDialWaitsForAServerThatIsNotUpYet(t *testing.T) {
	s := natstest.Start(t)
	s.Stop()
	var log lines
	connected := make(chan error, 1)
	go func() {
		nc, err := natsconn.Dial(context.Background(), natsconn.Config{URL: s.URL, Instance: "late"},
			slog.New(slog.NewTextHandler(&log, nil)), natsconn.Hooks{})
		if err == nil {
			nc.Close()
		}
		connected <- err
	}()
	eventually(t, "it says that it waits", func() bool { return strings.Contains(log.String(), "waiting for nats") })
	if !strings.Contains(log.String(), strings.TrimPrefix(s.URL, "nats://")) {
		t.Errorf("the log does not say where: %s", log.String())
	}
	s.Restart(t)
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	if strings.Count(log.String(), "waiting for nats") != 1 {
		t.Errorf("said more than once within seconds:\n%s", log.String())
	}
}

func TestDialGivesUpWhenItsContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody is there
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = natsconn.Dial(ctx, natsconn.Config{URL: "nats://walter:secret@" + address}, discard(), natsconn.Hooks{})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "walter") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func TestDialRefusesBadSettings(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("no credentials"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]natsconn.Config{
		"creds": {Creds: none},
		"junk":  {Creds: junk},
		"nkey":  {NKey: none},
		"ca":    {CA: none},
		"cert":  {Cert: none},
		"key":   {Cert: none, Key: none},
		"url":   {URL: "nats://[::1"},
	} {
		if cfg.URL == "" {
			cfg.URL = "nats://127.0.0.1:1"
		}
		nc, err := natsconn.Dial(t.Context(), cfg, discard(), natsconn.Hooks{})
		if err == nil {
			nc.Close()
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestDialTellsOfTheConnectionsState(t *testing.T) {
	s := natstest.Start(t)
	away, back, closed := make(chan error, 1), make(chan struct{}, 1), make(chan error, 1)
	nc, err := natsconn.Dial(t.Context(), natsconn.Config{URL: s.URL}, discard(), natsconn.Hooks{
		Disconnected: func(err error) { away <- err },
		Reconnected:  func() { back <- struct{}{} },
		Closed:       func(err error) { closed <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	<-away
	<-back
	nc.Close()
	<-closed
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  natstest.Option
		want string // "" for nothing
	}{
		{"nothing", func(*server.Options) {}, ""},
		{"no JetStream", func(o *server.Options) { o.JetStream = false }, "start the server with -js"},
		{"small payloads", func(o *server.Options) { o.MaxPayload = 1000 }, "max_payload is 1000 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nc := natstest.Start(t, tc.opt).Conn(t)
			err := natsconn.Check(t.Context(), nc)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCheckRefusesAnOldServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serveOldNATS(l)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc, err := natsconn.Dial(ctx, natsconn.Config{URL: "nats://" + l.Addr().String()}, discard(), natsconn.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	err = natsconn.Check(short, nc)
	if err == nil || !strings.Contains(err.Error(), "version 2.10.29 and has to be "+natsconn.MinVersion) {
		t.Errorf("got %v", err)
	}
}

// serveOldNATS speaks as much of the protocol as a connection needs.
func serveOldNATS(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		_, _ = conn.Write([]byte(`INFO {"server_id":"X","version":"2.10.29","proto":1,"headers":true,"max_payload":1048576}` + "\r\n"))
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				conn.Close()
				break
			}
			if bytes.Contains(buf[:n], []byte("PING\r\n")) {
				_, _ = conn.Write([]byte("PONG\r\n"))
			}
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"nats://h:4222":                    "nats://h:4222",
		"nats://ann:p@ss@h:4222":           "nats://h:4222",
		"token@h":                          "h",
		"tls://t@a:1, nats://u:p@b:2 ,c:3": "tls://a:1,nats://b:2,c:3",
		"nats://u:p@h/?x=1":                "nats://h/?x=1",
	} {
		if got := natsconn.Redact(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

package natstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// clusterReady bounds elections, and the making of a stream.
const clusterReady = 60 * time.Second

// memberEnv, if set, holds the member that a process is to be.
const memberEnv = "TRIPLINE_TEST_NATS_MEMBER"

// Cluster is nats-servers, each a process of its own, that form one JetStream.
// The processes are the test's binary: its TestMain calls [BeMember].
type Cluster struct {
	Members []*Member
	URL     string // all of them, with commas between
}

// Member is one server of a cluster.
type Member struct {
	Name          string
	Client, Route string // addresses that it listens on
	Routes        string // of all
	Store         string

	cmd *exec.Cmd
}

// BeMember runs a server of a cluster until it is told to stop, and returns
// true, if that is what this process was started for.
func BeMember() bool {
	text := os.Getenv(memberEnv)
	if text == "" {
		return false
	}
	if err := serveMember(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serveMember(text string) error {
	var m Member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	client, err := net.ResolveTCPAddr("tcp", m.Client)
	if err != nil {
		return err
	}
	route, err := net.ResolveTCPAddr("tcp", m.Route)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: client.Port,
		JetStream: true, StoreDir: m.Store, JetStreamMaxStore: 8 << 30, JetStreamMaxMemory: 1 << 30,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: route.Port},
		Routes:  server.RoutesFromStr(m.Routes),
		NoLog:   true, NoSigs: true, DisableJetStreamBanner: true,
	})
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	srv.Start()
	<-stop
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// StartCluster runs n servers until the test ends, and returns once their
// JetStream can make a replicated stream.
func StartCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	c := &Cluster{}
	var routes, urls []string
	for i := range n {
		m := &Member{Name: fmt.Sprint("n", i), Client: freeAddr(t), Route: freeAddr(t), Store: filepath.Join(t.TempDir(), "store")}
		c.Members = append(c.Members, m)
		routes = append(routes, "nats://"+m.Route)
		urls = append(urls, m.URL())
	}
	c.URL = strings.Join(urls, ",")
	for _, m := range c.Members {
		m.Routes = strings.Join(routes, ",")
		m.Start(t)
		t.Cleanup(m.Kill)
	}
	c.await(t)
	return c
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// URL is where clients connect.
func (m *Member) URL() string { return "nats://" + m.Client }

// Start starts the server, again too, and returns once it takes connections.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
	var out bytes.Buffer
	m.cmd.Stderr = &out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(readyWithin); ; {
		conn, err := net.Dial("tcp", m.Client)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nats-server %s is not there within %v: %v %s", m.Name, readyWithin, err, out.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Kill ends the server without a word to anybody, and waits for its end.
func (m *Member) Kill() { m.end(syscall.SIGKILL) }

// Stop ends the server in order: it gives its leaderships away.
func (m *Member) Stop() { m.end(syscall.SIGTERM) }

func (m *Member) end(s syscall.Signal) {
	if m.cmd != nil && m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Signal(s)
		_ = m.cmd.Wait() // it was a signal
	}
}

// JetStream opens a connection to all servers, which ends with the test.
func (c *Cluster) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(c.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// await returns once a replicated stream can be made.
func (c *Cluster) await(t testing.TB) {
	t.Helper()
	js := c.JetStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), clusterReady)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.CreateStream(try, jetstream.StreamConfig{Name: "FORMED", Replicas: len(c.Members)})
		cancel()
		if err == nil {
			_ = js.DeleteStream(ctx, "FORMED")
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the cluster did not form within %v: %v", clusterReady, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Leader returns the server that leads a stream.
func (c *Cluster) Leader(t testing.TB, js jetstream.JetStream, stream string) *Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterReady)
	defer cancel()
	for {
		s, err := js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			for _, m := range c.Members {
				if m.Name == s.CachedInfo().Cluster.Leader {
					return m
				}
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("stream %s has no leader within %v: %v", stream, clusterReady, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

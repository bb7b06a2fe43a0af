package natstest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Cluster is servers that form one JetStream.
type Cluster struct {
	Servers map[string]*Server // by name: n0, n1, ...
	URL     string             // all of them, with commas between
}

// clusterReady bounds the first election, and the making of a stream.
const clusterReady = 60 * time.Second

// StartCluster runs n servers that find each other, and returns once their
// JetStream has a leader.
func StartCluster(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	listeners := make([]net.Listener, n)
	routes := make([]string, n)
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		routes[i] = "nats://" + l.Addr().String()
	}
	c := &Cluster{Servers: map[string]*Server{}}
	var urls []string
	for i, l := range listeners {
		name, port := fmt.Sprint("n", i), l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		s := Start(t, append([]Option{func(o *server.Options) {
			o.ServerName = name
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
			o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		}}, opts...)...)
		c.Servers[name] = s
		urls = append(urls, s.URL)
	}
	c.URL = strings.Join(urls, ",")
	c.await(t)
	return c
}

// await returns once a replicated stream can be made.
func (c *Cluster) await(t testing.TB) {
	t.Helper()
	js := c.any().JetStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), clusterReady)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := js.CreateStream(try, jetstream.StreamConfig{Name: "FORMED", Replicas: len(c.Servers)})
		cancel()
		if err == nil {
			_ = js.DeleteStream(ctx, "FORMED")
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the cluster did not form within %v: %v", clusterReady, err)
		}
	}
}

func (c *Cluster) any() *Server {
	for _, s := range c.Servers {
		return s
	}
	return nil
}

// Leader returns the server that leads a stream.
func (c *Cluster) Leader(t testing.TB, js jetstream.JetStream, stream string) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clusterReady)
	defer cancel()
	for {
		s, err := js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			if leader := c.Servers[s.CachedInfo().Cluster.Leader]; leader != nil {
				return leader
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("stream %s has no leader within %v: %v", stream, clusterReady, err)
		}
	}
}

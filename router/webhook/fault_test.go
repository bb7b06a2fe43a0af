package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline/tripline/router"
	"github.com/tripline/tripline/router/webhook"
)

// listen runs a bare TCP server: serve gets each connection.
func listen(t *testing.T, serve func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// readHead reads a request up to its body.
func readHead(conn net.Conn) {
	var head []byte
	buf := make([]byte, 1)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		if _, err := conn.Read(buf); err != nil {
			return
		}
		head = append(head, buf[0])
	}
}

// One deadline covers all of an attempt, whatever the consumer spends it on.
func TestR10_OneDeadlineFromDialToLastByte(t *testing.T) {
	hang := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
		words string
	}{
		{"accepts and never answers", hang, "no answer in time"},
		{"drips its headers", func(conn net.Conn) {
			readHead(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			drip(conn, "X-A: b\r\n")
		}, "no answer in time"},
		{"drips its body", func(conn net.Conn) {
			readHead(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
			drip(conn, "x")
		}, "answer not complete in time"},
		{"drips chunks", func(conn net.Conn) {
			readHead(conn)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			drip(conn, "1\r\nx\r\n")
		}, "answer not complete in time"},
		{"says continue for ever", func(conn net.Conn) {
			readHead(conn)
			drip(conn, "HTTP/1.1 102 Processing\r\n\r\n")
		}, "no answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sink(t, webhook.Config{URL: listen(t, c.serve)})
			const limit = 300 * time.Millisecond
			begin := time.Now()
			err := s.Deliver(within(t, limit), trigger(1))
			took := time.Since(begin)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %v, want one that says %q", err, c.words)
			}
			if took < limit || took > limit+5*time.Second {
				t.Errorf("took %v of %v", took, limit)
			}
		})
	}
}

// drip writes s again and again, slowly, until the other side has enough.
func drip(conn net.Conn, s string) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-tick.C:
			if _, err := io.WriteString(conn, s); err != nil {
				_ = conn.Close()
				<-gone
				return
			}
		}
	}
}

// The sink's own timeout holds where the context allows more.
func TestR10_TimeoutOfTheSink(t *testing.T) {
	s := sink(t, webhook.Config{
		URL:     listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }),
		Timeout: 100 * time.Millisecond,
	})
	begin := time.Now()
	err := s.Deliver(within(t, patience), trigger(1))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > patience/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// A body of any size costs no more than its first 64 KiB; the delivery stands.
func TestR10_HugeBodyIsNotRead(t *testing.T) {
	var mu sync.Mutex
	var wrote int64
	written := func() int64 { mu.Lock(); defer mu.Unlock(); return wrote }
	url := listen(t, func(conn net.Conn) {
		readHead(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
		block := make([]byte, 32<<10)
		for range 1_000_000_000 / len(block) {
			n, err := conn.Write(block)
			mu.Lock()
			wrote += int64(n)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	s := sink(t, webhook.Config{URL: url})
	if err := s.Deliver(within(t, patience), trigger(1)); err != nil {
		t.Errorf("a delivery with a long answer failed: %v", err)
	}
	if n := written(); n > 64<<20 {
		t.Errorf("the consumer could send %d bytes", n)
	}
}

// Connections are reused after whatever body fits the cap, and after errors.
func TestR10_ConnectionIsReusedWhenSafe(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		conns  int
	}{
		{"no body", status(204), 1},
		{"small body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, 1},
		{"chunked body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "ok")
		}, 1},
		{"60 KiB", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 60<<10)) }, 1},
		{"60 KiB of failure", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = w.Write(make([]byte, 60<<10))
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, c.answer)
			s := sink(t, webhook.Config{URL: server.URL})
			for n := range 5 {
				_ = s.Deliver(within(t, patience), trigger(n))
			}
			remotes := map[string]bool{}
			for _, call := range server.received() {
				remotes[call.remote] = true
			}
			if len(remotes) != c.conns || len(server.received()) != 5 {
				t.Errorf("%d connections for %d calls, want %d", len(remotes), len(server.received()), c.conns)
			}
		})
	}
}

func TestBrokenAnswersFail(t *testing.T) {
	reset := func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }
	for name, serve := range map[string]func(net.Conn){
		"closes at once":        func(net.Conn) {},
		"resets at once":        reset,
		"resets in the headers": func(c net.Conn) { readHead(c); _, _ = io.WriteString(c, "HTTP/1.1 200"); reset(c) },
		"resets in the body": func(c net.Conn) {
			readHead(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
			reset(c)
		},
		"cuts the body": func(c net.Conn) {
			readHead(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		},
		"speaks no HTTP":     func(c net.Conn) { readHead(c); _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9\r\n") },
		"switches protocols": func(c net.Conn) { readHead(c); _, _ = io.WriteString(c, "HTTP/1.1 101 Switching\r\n\r\n") },
		"endless headers": func(c net.Conn) {
			readHead(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for range 1 << 20 {
				if _, err := io.WriteString(c, "X-A: "+strings.Repeat("b", 1000)+"\r\n"); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sink(t, webhook.Config{URL: listen(t, serve)})
			err := s.Deliver(within(t, patience), trigger(1))
			if d, ok := errors.AsType[*router.DeliveryError](err); !ok || d.Cause != router.Failed {
				t.Errorf("%v, want a failure", err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waited for the deadline: %v", err)
			}
		})
	}
}

// A consumer that isn't there, and one whose host hangs in the dial.
func TestUnreachableConsumer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	s := sink(t, webhook.Config{URL: "http://" + l.Addr().String()})
	err = s.Deliver(within(t, patience), trigger(1))
	if d, ok := errors.AsType[*router.DeliveryError](err); !ok || d.Cause != router.Failed ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

// Connections follow concurrency: a load of any length uses as many, not one
// per call, and no more than may run at once.
func TestR11_IdleConnectionsFollowConcurrency(t *testing.T) {
	const concurrency, calls = 24, 2000
	c := serve(t, status(204))
	s := sink(t, webhook.Config{URL: c.URL, Concurrency: concurrency})
	work := make(chan int)
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for n := range work {
				if err := s.Deliver(context.Background(), trigger(n)); err != nil {
					t.Errorf("delivery %d: %v", n, err)
				}
			}
		})
	}
	for n := range calls {
		work <- n
	}
	close(work)
	wg.Wait()
	remotes := map[string]int{}
	for _, call := range c.received() {
		remotes[call.remote]++
	}
	// An idle one may be missed by a hair and a dial begun; ports must not
	// follow the number of calls.
	if len(remotes) > 2*concurrency {
		t.Errorf("%d connections for %d calls with a concurrency of %d", len(remotes), calls, concurrency)
	}
}

func TestR11_NoMoreConnectionsThanConcurrency(t *testing.T) {
	const concurrency = 3
	var mu sync.Mutex
	var now, most int
	release := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
	})
	s := sink(t, webhook.Config{URL: c.URL, Concurrency: concurrency})
	var wg sync.WaitGroup
	for n := range 4 * concurrency {
		wg.Go(func() {
			if err := s.Deliver(within(t, patience), trigger(n)); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, fmt.Sprintf("%d calls are in flight", concurrency), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return now == concurrency
	})
	close(release)
	wg.Wait()
	if most != concurrency {
		t.Errorf("%d calls at once, want %d", most, concurrency)
	}
}

// waitFor waits for a condition that another goroutine brings about.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

// R14: a reload closes the sink, and harms no attempt in flight; afterwards no
// connection is left.
func TestR14_CloseHarmsNoAttemptInFlight(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	gone := make(chan string, 16)
	c := newConsumer(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		w.WriteHeader(http.StatusNoContent)
	})
	c.Config.ConnState = func(conn net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			gone <- conn.RemoteAddr().String()
		}
	}
	c.Start()
	t.Cleanup(c.Close)
	s := webhook.New(webhook.Config{URL: c.URL})
	result := make(chan error, 1)
	go func() { result <- s.Deliver(within(t, patience), trigger(1)) }()
	<-arrived
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := <-result; err != nil {
		t.Errorf("the attempt in flight: %v", err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the connection was kept")
	}
}

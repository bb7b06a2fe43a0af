package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// echo serves lines back until the test ends.
func echo(t *testing.T) string {
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
				in := bufio.NewScanner(conn)
				for in.Scan() {
					fmt.Fprintln(conn, in.Text())
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// caller is a client of the echo.
type caller struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, p *proxy) caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return caller{t, conn}
}

// ask sends a line and returns the error of the wait for its echo.
func (c caller) ask(within time.Duration) error {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(within))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "hello\n" {
		c.t.Errorf("echo %q", line)
	}
	return err
}

func TestProxyMakesTheFaultsOfANetwork(t *testing.T) {
	p, err := newProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)

	old := dial(t, p)
	if err := old.ask(5 * time.Second); err != nil {
		t.Fatalf("through a quiet proxy: %v", err)
	}
	p.delay(60 * time.Millisecond)
	begun := time.Now()
	if err := old.ask(5 * time.Second); err != nil || time.Since(begun) < 120*time.Millisecond {
		t.Errorf("with a delay of 60 ms each way: %v after %v", err, time.Since(begun))
	}
	p.delay(0)

	p.darken(true)
	fresh := dial(t, p)
	for name, c := range map[string]caller{"old": old, "fresh": fresh} {
		if err := c.ask(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s connection in the dark: %v, want silence", name, err)
		}
	}
	p.darken(false)
	if err := old.ask(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that lost bytes came back: %v", err)
	}
	next := dial(t, p)
	if err := next.ask(5 * time.Second); err != nil {
		t.Errorf("after the dark: %v", err)
	}
	if n := p.cut(func() bool { return true }); n == 0 {
		t.Error("nothing was cut")
	}
	if err := next.ask(5 * time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the cut: %v, want an end", err)
	}
}

// Package natsconn opens the router's connections to NATS, and runs the
// server itself where none is configured.
package natsconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	minReconnectWait = 250 * time.Millisecond
	maxReconnectWait = 2 * time.Second
	// A connection whose other end has vanished without a word is given up when
	// two pings have got no answer: after 15 s at most.
	pingInterval = 5 * time.Second
	// A wait for a server is told of after firstReminder, when a first attempt
	// has said why, and then every remindEvery.
	firstReminder = 500 * time.Millisecond
	remindEvery   = 30 * time.Second
)

// Config says how to reach an external server. Secrets in it never appear in
// logs or errors.
type Config struct {
	// URL is one or several server URLs with commas between them.
	URL string
	// One way to authenticate, or none: a .creds file, an nkey seed file, a
	// user with a password, or a token. They may also stand in the URL.
	Creds, NKey           string
	User, Password, Token string
	// TLS files in PEM; all empty leaves TLS to the URL and the server.
	CA, Cert, Key string
	// Instance names this process to the server: tripline/<instance>.
	Instance string
}

// Hooks tell of a connection's state. Any of them may be nil. They are called
// from the connection's own goroutine and must not block.
type Hooks struct {
	Disconnected func(error)
	Reconnected  func()
	Closed       func(error)
	// SlowConsumer: a subscription had no room, dropped is its count so far.
	SlowConsumer func(subject string, dropped int)
}

// Dial connects, and waits for a server that is not up yet until ctx ends; it
// says so in the log. Afterwards the connection comes back by itself for ever.
// While it is away nothing is buffered: publishing fails at once, so that
// nobody takes a buffer for a stored message.
//
// A server that is there and refuses us is an error at once.
func Dial(ctx context.Context, cfg Config, log *slog.Logger, hooks Hooks) (*nats.Conn, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	return dial(ctx, cfg.URL, opts, log, hooks)
}

// Validate reads the files that the configuration names, and says what is
// wrong with one. It connects to nothing.
func (c Config) Validate() error {
	_, err := c.options()
	return err
}

func (c Config) options() ([]nats.Option, error) {
	opts := []nats.Option{nats.Name("tripline/" + c.Instance)}
	switch {
	case c.Creds != "":
		opt, err := credentials(c.Creds)
		if err != nil {
			return nil, err
		}
		opts = append(opts, opt)
	case c.NKey != "":
		opt, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return nil, fmt.Errorf("nats nkey %s: %w", c.NKey, err)
		}
		opts = append(opts, opt)
	case c.User != "":
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	case c.Token != "":
		opts = append(opts, nats.Token(c.Token))
	}
	t, err := c.tls()
	if err != nil {
		return nil, err
	}
	if t != nil {
		opts = append(opts, nats.Secure(t))
	}
	return opts, nil
}

// credentials reads the file once beforehand: the client would only read it
// when a server asks, and take a broken one for a server that is away.
func credentials(file string) (nats.Option, error) {
	opt := nats.UserCredentials(file)
	var o nats.Options
	if err := opt(&o); err != nil {
		return nil, fmt.Errorf("nats credentials: %w", err)
	}
	if _, err := o.UserJWT(); err != nil {
		return nil, fmt.Errorf("nats credentials %s: %w: give a .creds file, as nsc and nk make them", file, err)
	}
	if _, err := o.SignatureCB([]byte("to see whether it can sign")); err != nil {
		return nil, fmt.Errorf("nats credentials %s: %w: give a .creds file, as nsc and nk make them", file, err)
	}
	return opt, nil
}

func (c Config) tls() (*tls.Config, error) {
	if c.CA == "" && c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("nats ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("nats ca %s: no certificate in PEM in it", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("nats client certificate: give both the certificate and its key")
	}
	if c.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("nats client certificate: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

// dial connects with our settings beside opts.
func dial(ctx context.Context, servers string, opts []nats.Option, log *slog.Logger, hooks Hooks) (*nats.Conn, error) {
	w := &watcher{log: log, hooks: hooks, up: make(chan struct{}, 1), down: make(chan error, 1), tries: make(chan error, 1)}
	opts = append(opts,
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.RetryOnFailedConnect(true),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(w.connected),
		nats.ReconnectHandler(w.reconnected),
		nats.DisconnectErrHandler(w.disconnected),
		nats.ReconnectErrHandler(w.refused),
		nats.ClosedHandler(w.closed),
		nats.ErrorHandler(w.failed),
	)
	nc, err := nats.Connect(servers, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to nats at %s: %w", Redact(servers), err)
	}
	if err := w.wait(ctx, nc, Redact(servers)); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// wait returns when the connection is up, was refused for good, or ctx ends.
func (w *watcher) wait(ctx context.Context, nc *nats.Conn, servers string) error {
	if nc.IsConnected() {
		return nil
	}
	cause := nc.LastError()
	first := time.After(firstReminder)
	remind := time.NewTicker(remindEvery)
	defer remind.Stop()
	say := func() {
		w.log.Warn("waiting for nats, which is not reachable yet", "servers", servers, "cause", cause)
	}
	for {
		select {
		case <-w.up:
			return nil
		case err := <-w.down:
			return fmt.Errorf("nats at %s refused the connection: %w: check nats.creds, nats.user and nats.password, or nats.token, and the certificates", servers, err)
		case cause = <-w.tries:
		case <-first:
			say()
		case <-remind.C:
			say()
		case <-ctx.Done():
			if cause == nil {
				cause = ctx.Err()
			}
			return fmt.Errorf("nats at %s cannot be reached: %w: start the server, or correct nats.url", servers, cause)
		}
	}
}

// Redact takes user names, passwords and tokens out of a list of URLs.
func Redact(servers string) string {
	list := strings.Split(servers, ",")
	for i, s := range list {
		s = strings.TrimSpace(s)
		if at := strings.LastIndexByte(s, '@'); at >= 0 {
			scheme, _, ok := strings.Cut(s, "://")
			if ok {
				s = scheme + "://" + s[at+1:]
			} else {
				s = s[at+1:]
			}
		} else if u, err := url.Parse(s); err == nil {
			s = u.Redacted()
		}
		list[i] = s
	}
	return strings.Join(list, ",")
}

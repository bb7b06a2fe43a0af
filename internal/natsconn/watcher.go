package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// watcher turns what the client reports into log lines and hooks. Its methods
// are called one at a time, from the connection's callback goroutine.
type watcher struct {
	log   *slog.Logger
	hooks Hooks
	up    chan struct{} // has a value once the connection was established
	down  chan error    // has a value once it was refused for good
	tries chan error    // has the newest reason for a failed attempt, if there is one
}

func (w *watcher) connected(nc *nats.Conn) {
	select {
	case w.up <- struct{}{}:
	default:
	}
	if nc.IsClosed() {
		return // meanwhile, by a stop at start-up
	}
	w.log.Info("connected to nats", "server", nc.ConnectedUrlRedacted(), "version", nc.ConnectedServerVersion())
}

func (w *watcher) reconnected(nc *nats.Conn) {
	w.log.Info("reconnected to nats", "server", nc.ConnectedUrlRedacted())
	if w.hooks.Reconnected != nil {
		w.hooks.Reconnected()
	}
}

func (w *watcher) disconnected(nc *nats.Conn, err error) {
	if nc.IsClosed() {
		return // on purpose
	}
	w.log.Warn("disconnected from nats, reconnecting", "cause", err)
	if w.hooks.Disconnected != nil {
		w.hooks.Disconnected(err)
	}
}

// refused is told of each attempt to connect that failed.
func (w *watcher) refused(_ *nats.Conn, err error) {
	w.log.Debug("no connection to nats", "cause", err)
	select {
	case <-w.tries:
	default:
	}
	w.tries <- err // there is room: only this method sends
	if !permanent(err) {
		return
	}
	select {
	case w.down <- err:
	default:
	}
}

func (w *watcher) closed(nc *nats.Conn) {
	if w.hooks.Closed != nil {
		w.hooks.Closed(nc.LastError())
	}
}

func (w *watcher) failed(nc *nats.Conn, sub *nats.Subscription, err error) {
	if sub == nil {
		if nc.IsConnected() { // else it is told as a disconnect
			w.log.Warn("nats reported an error", "error", err)
		}
		return
	}
	w.log.Warn("nats reported an error", "error", err, "subject", sub.Subject)
	if w.hooks.SlowConsumer != nil && errors.Is(err, nats.ErrSlowConsumer) {
		if n, err := sub.Dropped(); err == nil {
			w.hooks.SlowConsumer(sub.Subject, n)
		}
	}
}

// permanent tells whether another attempt with the same settings is of no use.
func permanent(err error) bool {
	for _, refusal := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked,
		nats.ErrAccountAuthExpired, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	// A server that wants a certificate and gets none hangs up right after the
	// handshake; its alert may come too late to be read.
	if errors.Is(err, nats.ErrTLS) && strings.Contains(err.Error(), "closed by remote after TLS handshake") {
		return true
	}
	// The server's word on our certificate; crypto/tls has no public type for it.
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// reconnectDelay grows from minReconnectWait to maxReconnectWait, each with up
// to a quarter more, so that many clients don't come back as one.
func reconnectDelay(attempts int) time.Duration {
	wait := min(minReconnectWait<<min(max(attempts-1, 0), 8), maxReconnectWait)
	return wait + rand.N(wait/4)
}

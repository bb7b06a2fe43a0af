package natsconn

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// connectTimeout bounds each attempt of [DialOnce] per server address.
const connectTimeout = 3 * time.Second

// DialOnce connects or says at once why it can't: for a command that somebody
// waits for. Once it has been up, the connection comes back by itself like
// that of [Dial], and nothing is buffered while it is away.
func DialOnce(cfg Config) (*nats.Conn, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts,
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		// Without a handler the client prints to standard error.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	)
	nc, err := nats.Connect(cfg.URL, opts...)
	servers := Redact(cfg.URL)
	switch {
	case err != nil && permanent(err):
		return nil, fmt.Errorf("nats at %s refused the connection: %w: check the credentials and the certificates", servers, err)
	case err != nil:
		return nil, fmt.Errorf("nats at %s cannot be reached: %w: start the server, or correct the address", servers, err)
	}
	return nc, nil
}

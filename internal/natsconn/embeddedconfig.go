package natsconn

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// DefaultSyncInterval is how often stored messages are synced to disk. A
// killed process loses nothing; a machine that loses its power may lose this
// much.
const DefaultSyncInterval = 100 * time.Millisecond

// EmbeddedConfig says how to run the server in this process.
type EmbeddedConfig struct {
	// Dir holds all that is stored; it is made if it isn't there.
	Dir string
	// Listen is host:port for clients; port 0 takes a free one. Empty: none
	// but this process gets in.
	Listen string
	// MQTT is host:port for MQTT clients, or empty.
	MQTT string
	// What clients must show. With none of them only loopback addresses may
	// be listened on.
	User, Password, Token string
	// MaxStore is how many bytes may be stored; 0: 80 % of what was free on
	// the disk at the first start.
	MaxStore int64
	// SyncInterval is how often is synced to disk, 0: DefaultSyncInterval.
	// SyncAlways: before each confirmation, much slower for single messages.
	SyncInterval time.Duration
	SyncAlways   bool
	// Instance names this process to the server's clients: tripline/<instance>.
	Instance string
}

func (c EmbeddedConfig) options() (*server.Options, error) {
	o := &server.Options{
		ServerName:             "tripline-" + c.Instance,
		StoreDir:               c.Dir,
		JetStream:              true,
		JetStreamMaxMemory:     256 << 20, // nothing of ours is stored there but consumers
		SyncAlways:             c.SyncAlways,
		SyncInterval:           c.SyncInterval,
		Username:               c.User,
		Password:               c.Password,
		Authorization:          c.Token,
		DisableJetStreamBanner: true,
		NoSigs:                 true, // the signals are ours
		NoSublistCache:         true, // each device has a subject of its own: it would only churn
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = DefaultSyncInterval
	}
	var err error
	if c.Listen == "" {
		o.DontListen = true
	} else if o.Host, o.Port, err = c.address("nats.listen", c.Listen); err != nil {
		return nil, err
	}
	if c.MQTT != "" {
		if o.MQTT.Host, o.MQTT.Port, err = c.address("nats.mqtt_listen", c.MQTT); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// address splits host:port, and holds back what would let anybody in.
func (c EmbeddedConfig) address(key, address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(p)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%s %q: write host:port, such as 127.0.0.1:4222", key, address)
	}
	if c.User == "" && c.Token == "" && !loopback(host) {
		return "", 0, fmt.Errorf("%s %s is reachable from other machines, and there are no credentials: set nats.user and nats.password (or nats.token), or listen on 127.0.0.1", key, address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// portsFree finds out beforehand what the server would only report in words.
func portsFree(o *server.Options) error {
	try := func(key, host string, port int) error {
		if port <= 0 {
			return nil
		}
		address := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("%s is in use by another process: stop it, or set %s to another port", address, key)
		case err != nil:
			return fmt.Errorf("%s %s: %w", key, address, err)
		}
		return l.Close()
	}
	if o.DontListen {
		return try("nats.mqtt_listen", o.MQTT.Host, o.MQTT.Port)
	}
	return errors.Join(
		try("nats.listen", o.Host, o.Port),
		try("nats.mqtt_listen", o.MQTT.Host, o.MQTT.Port))
}

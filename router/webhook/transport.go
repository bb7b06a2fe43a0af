package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// TLS says how an https consumer is trusted and how Tripline identifies
// itself. The version is 1.2 or newer, always.
type TLS struct {
	// CA is a file of PEM certificates that are trusted instead of the system's.
	CA string
	// Cert and Key are files of Tripline's own certificate in PEM, for
	// consumers that ask for one (mTLS). Both or none. They are read again
	// when a connection asks for them, so renewed files need no restart.
	Cert, Key string
	// ServerName is the name that the consumer's certificate must carry, where
	// it isn't the URL's host.
	ServerName string
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no PEM certificate", t.CA)
		}
	}
	if t.Cert == "" && t.Key == "" {
		return cfg, nil
	}
	if t.Cert == "" || t.Key == "" {
		return nil, fmt.Errorf("cert and key must be set together")
	}
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("reading cert and key: %w", err)
		}
		return &pair, nil
	}
	return cfg, nil
}

// Limits of a connection.
const (
	// connectTimeout bounds dial and TLS handshake where the attempt has no
	// Timeout. An attempt gives up on its own deadline; the transport goes on
	// dialling for the next one, and this is what ends it, so that dead dials
	// don't hold the consumer's connections for minutes.
	connectTimeout = 5 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 64 << 10
	keepAlive      = 15 * time.Second
)

// newTransport returns a transport for conns connections to one consumer.
//
// No proxy is used, whatever HTTP_PROXY says: the egress rule is about the
// consumer's address, and a proxy that only some environment variable names
// would get around it. Responses aren't decompressed, so none can unfold into
// more than was sent.
func newTransport(cfg Config, tlsConfig *tls.Config, conns int) *http.Transport {
	connect := connectTimeout
	if cfg.Timeout > 0 {
		connect = min(connect, cfg.Timeout)
	}
	dialer := &net.Dialer{Timeout: connect, KeepAlive: keepAlive, Control: cfg.Egress.Control}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    connect,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: connectTimeout},
		MaxIdleConns:           0, // only the bound per host counts
		MaxIdleConnsPerHost:    conns,
		MaxConnsPerHost:        conns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}

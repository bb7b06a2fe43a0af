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
	// CAFile holds PEM certificates that are trusted instead of the system's.
	CAFile string
	// CertFile and KeyFile hold Tripline's own certificate in PEM, for
	// consumers that ask for one (mTLS). Both or none. They are read again
	// when a connection asks for them, so renewed files need no restart.
	CertFile, KeyFile string
	// ServerName is the name that the consumer's certificate must carry, where
	// it isn't the URL's host.
	ServerName string
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", t.CAFile)
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return cfg, nil
	}
	if t.CertFile == "" || t.KeyFile == "" {
		return nil, fmt.Errorf("tls.cert and tls.key must be set together")
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return nil, fmt.Errorf("tls.cert: %w", err)
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading tls.cert: %w", err)
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
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: keepAlive, PingTimeout: connectTimeout},
		MaxIdleConns:           0, // only the bound per host counts
		MaxIdleConnsPerHost:    conns,
		MaxConnsPerHost:        conns,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true,
	}
}

package natsconn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/internal/natstest"
)

// authority makes certificates, and keeps them in files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes <name>.pem and <name>.key. The first is the authority's own.
func (a *authority) issue(t *testing.T, name string, c *x509.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.Subject = pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestDialOverTLS(t *testing.T) {
	a := newAuthority(t, t.TempDir())
	ca := filepath.Join(a.dir, "ca.pem")
	cert, key := a.issue(t, "server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	clientCert, clientKey := a.issue(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(mustParse(t, ca))
	s := natstest.Start(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 5
		o.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	good := natsconn.Config{URL: s.URL, CA: ca, Cert: clientCert, Key: clientKey}
	nc, err := natsconn.Dial(ctx, good, discard(), natsconn.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.TLSConnectionState(); err != nil {
		t.Errorf("no TLS: %v", err)
	}
	nc.Close()

	// Another authority signed the server's certificate: waiting won't help.
	other := good
	other.CA, _ = newAuthority(t, t.TempDir()).issue(t, "other", &x509.Certificate{IsCA: true, BasicConstraintsValid: true})
	_, err = natsconn.Dial(ctx, other, discard(), natsconn.Hooks{})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: got %v", err)
	}
	anonymous := good
	anonymous.Cert, anonymous.Key = "", ""
	_, err = natsconn.Dial(ctx, anonymous, discard(), natsconn.Hooks{})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "refused the connection") {
		t.Errorf("no certificate where the server wants one: got %v", err)
	}
	for name, cfg := range map[string]natsconn.Config{"an unknown authority": other, "no certificate": anonymous} {
		if _, err := natsconn.DialOnce(cfg); err == nil || !strings.Contains(err.Error(), "refused the connection") {
			t.Errorf("%s, for a command: got %v", name, err)
		}
	}
	bad := good
	bad.CA = clientKey
	if _, err := natsconn.Dial(ctx, bad, discard(), natsconn.Hooks{}); err == nil || !strings.Contains(err.Error(), "no certificate in PEM") {
		t.Errorf("a CA file without a certificate: got %v", err)
	}
}

func mustParse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

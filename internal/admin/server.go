// Package admin is the HTTP side of a running Tripline: health, metrics and
// the API that operators and the command line use.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Limits of the server. They protect it from clients, not clients from it.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	maxBody       = 8 << 20 // a fence of 100,000 vertices takes about 4 MiB
	shutdownGrace = 2 * time.Second
)

// Config says where and for whom the server listens.
type Config struct {
	// Listen is host:port. Port 0 takes a free one.
	Listen string
	// Token is the bearer token that every request except the health checks
	// must carry; "" asks for none, which only a loopback address may.
	Token string
	// Handler serves everything that the server itself doesn't.
	Handler http.Handler
	// Page serves the live page, at / and below /page/. It holds no secret,
	// and asks for the token itself; nil for none.
	Page http.Handler
	// Ready lists what a load balancer should know before it sends traffic.
	Ready func(context.Context) []Check
	Log   *slog.Logger
}

// Server is the admin HTTP server. It is made by Listen and lives in Run.
type Server struct {
	http     *http.Server
	listener net.Listener
}

// Listen takes the address, so that a busy one is known at start-up. It
// refuses an address beyond loopback without a token.
func Listen(cfg Config) (*Server, error) {
	if cfg.Token == "" && !loopback(cfg.Listen) {
		return nil, fmt.Errorf("admin.listen %s is reachable from other machines: set admin.token, or listen on 127.0.0.1", cfg.Listen)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: listening on %s: %w; stop what uses it, or set admin.listen to another address", cfg.Listen, errors.Unwrap(err))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	})
	mux.HandleFunc("GET /readyz", readyz(cfg.Ready))
	if cfg.Page != nil {
		mux.Handle("GET /{$}", cfg.Page)
		mux.Handle("GET /page/", cfg.Page)
	}
	guarded := http.MaxBytesHandler(cfg.Handler, maxBody)
	mux.Handle("/", authorize(cfg.Token, http.NewCrossOriginProtection().Handler(guarded)))
	var handler http.Handler = mux
	if cfg.Token == "" {
		handler = localOnly(mux)
	}
	return &Server{
		listener: l,
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close gives the address back. It does nothing after Run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx ends. Streams that are still open then are cut.
func (s *Server) Run(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("admin: serving %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		s.http.Close()
	}
	<-served
	return nil
}

// authorize lets only requests with the bearer token through. Comparing the
// digests takes the same time whatever was sent, its length included.
func authorize(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(sent))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="tripline"`)
			writeError(w, http.StatusUnauthorized, "send the admin.token as `Authorization: Bearer ...`")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localOnly refuses requests by any name but the loopback's: without a token,
// a web page whose name was made to point at this machine must not reach us.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			writeError(w, http.StatusForbidden, "without admin.token, only localhost and 127.0.0.1 are served")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback tells whether a host, with or without a port, is this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

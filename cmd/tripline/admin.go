package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tripline/tripline/internal/secret"
)

// operator is how the commands reach a running service.
type operator struct {
	Admin     string `env:"TRIPLINE_ADMIN" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Admin server of the service." group:"Service:"`
	TokenFile string `type:"existingfile" placeholder:"FILE" help:"File with the admin token; without it, TRIPLINE_ADMIN_TOKEN." group:"Service:"`
	JSON      bool   `name:"json" help:"Print JSON." group:"Service:"`
}

// defaultAdmin is where a service listens that is not told otherwise.
const defaultAdmin = "http://127.0.0.1:8080"

// tokenVariable holds the admin token. It is no flag: command lines are read
// by others.
const tokenVariable = "TRIPLINE_ADMIN_TOKEN"

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 256 << 20

// service is a running Tripline, seen through its admin API.
type service struct {
	base      string
	token     secret.Value
	tokenFrom string // where the command line has it from; "": from a configuration
	http      *http.Client
}

// service checks the flags. Nothing is sent yet.
func (o *operator) service() (*service, error) {
	address := cmp.Or(o.Admin, defaultAdmin) // an empty variable is as good as none
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--admin %s is no http:// or https:// address", o.Admin)}
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	token, from := os.Getenv(tokenVariable), tokenVariable
	if o.TokenFile != "" {
		data, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--token-file: %w", err)}
		}
		token, from = strings.TrimSpace(string(data)), o.TokenFile
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &service{base: u.String(), token: secret.Value(token), tokenFrom: from, http: &http.Client{Transport: transport}}, nil
}

// request is one question to the service.
type request struct {
	method string
	path   string // below /api/v1, its parts escaped
	query  url.Values
	body   []byte
}

// open sends a request and returns the answer of a success; its body is the
// caller's to close.
func (s *service) open(ctx context.Context, r request) (*http.Response, error) {
	address := s.base + "/api/v1" + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+string(s.token))
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, s.unreachable(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, s.refused(resp)
}

// unreachable says what to do when nobody answers.
func (s *service) unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("no service at %s: %w (start `tripline run`, or correct --admin or TRIPLINE_ADMIN)", s.base, err)
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return fmt.Errorf("asking %s: %w", s.base, err)
		}
	}
	return s.foreign(fmt.Sprintf("%.80s", err))
}

// foreign says that something else than Tripline answers.
func (s *service) foreign(answer string) error {
	return fmt.Errorf("%s does not answer like Tripline's admin server (%s): correct --admin or TRIPLINE_ADMIN", s.base, answer)
}

// refused makes an error of an answer that is none of success.
func (s *service) refused(resp *http.Response) error {
	var said struct{ Error string }
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(data, &said) != nil || said.Error == "" {
		said.Error = strings.TrimSpace(fmt.Sprintf("%s %.100s", resp.Status, data))
		if resp.StatusCode < http.StatusInternalServerError {
			return s.foreign(said.Error)
		}
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return s.unauthorized()
	case http.StatusBadRequest:
		return usageError{errors.New(said.Error)}
	}
	return statusError{resp.StatusCode, said.Error}
}

// statusError is what the service refused a request with.
type statusError struct {
	status int
	text   string
}

func (e statusError) Error() string { return e.text }

// unauthorized says how to give the token that the service asks for.
func (s *service) unauthorized() error {
	if s.tokenFrom == "" { // it is the configuration's
		return fmt.Errorf("the service at %s does not accept this configuration's admin.token", s.base)
	}
	how := "give it in a file, --token-file FILE, or in the environment variable " + tokenVariable
	if s.token == "" {
		return fmt.Errorf("the service at %s asks for a token, its admin.token: %s", s.base, how)
	}
	return fmt.Errorf("the service at %s does not accept the token from %s: it is not its admin.token; %s", s.base, s.tokenFrom, how)
}

// ask sends a request and returns the answer.
func (s *service) ask(ctx context.Context, r request) (json.RawMessage, error) {
	resp, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", s.base, err)
	}
	if !json.Valid(data) {
		return nil, s.foreign("no JSON")
	}
	return data, nil
}

// get asks for a value; raw is the answer as it came.
func get[T any](ctx context.Context, s *service, path string, query url.Values) (v T, raw json.RawMessage, err error) {
	return ask[T](ctx, s, request{method: http.MethodGet, path: path, query: query})
}

// ask sends a request whose answer is a value.
func ask[T any](ctx context.Context, s *service, r request) (v T, raw json.RawMessage, err error) {
	raw, err = s.ask(ctx, r)
	if err == nil {
		if err = json.Unmarshal(raw, &v); err != nil {
			err = fmt.Errorf("the answer of %s: %w", s.base, err)
		}
	}
	return v, raw, err
}

// printJSON writes an answer, indented.
func printJSON(out io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s\n", bytes.TrimSpace(b.Bytes()))
	return err
}

// at joins the parts of a path, each escaped.
func at(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// ago is how long ago something was, as people say it.
func ago(t time.Time) string { return short(time.Since(t)) }

// short is a duration with its two largest units.
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"

	"github.com/tripline/tripline/internal/secret"
)

// tokenShort is the length below which a token can be guessed.
const tokenShort = 16

// lookAtService asks the running service, if there is one, how it is.
func (d *doctor) lookAtService(ctx context.Context) {
	const what = "admin"
	a := d.cfg.Admin
	if n := len(a.Token); n > 0 && n < tokenShort {
		d.warn(what, "make one with `openssl rand -hex 32`", "admin.token has only %d characters", n)
	}
	host, port, err := net.SplitHostPort(a.Listen)
	if err != nil {
		d.fail(what, "", "admin.listen: %v", err)
		return
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, port)
	if !listens(ctx, address, d.timeout) {
		d.ok(what, "no service is running at %s", a.Listen)
		return
	}
	svc := &service{base: "http://" + address, token: secret.Value(a.Token), http: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
	d.lookAtToken(ctx, svc)
	d.lookAtReadiness(ctx, svc)
}

func (d *doctor) lookAtToken(ctx context.Context, svc *service) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	names, err := consumerNames(ctx, svc)
	if err != nil {
		d.fail("admin", "restart the service if admin.token was changed; or something else listens there: change admin.listen", "%v", err)
		return
	}
	d.ok("admin", "the service at %s answers, with %s", svc.base, plural(len(names), "consumer"))
	if len(names) != len(d.cfg.Consumers) {
		d.warn("admin", "tripline reload", "the service has %s, the configuration %d", plural(len(names), "consumer"), len(d.cfg.Consumers))
	}
}

func (d *doctor) lookAtReadiness(ctx context.Context, svc *service) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, svc.base+"/readyz", nil)
	if err != nil {
		d.fail("ready", "", "%v", err)
		return
	}
	resp, err := svc.http.Do(req)
	if err != nil {
		if timedOut(err) {
			d.fail("ready", "look at its log", "the service does not answer /readyz within %v", d.timeout)
			return
		}
		d.fail("ready", "", "%v", err)
		return
	}
	defer resp.Body.Close()
	var ready struct {
		Checks []struct {
			Name, Reason string
			OK           bool
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&ready); err != nil {
		d.fail("ready", "", "the answer of /readyz can't be read: %v", err)
		return
	}
	for _, c := range ready.Checks {
		switch {
		case !c.OK:
			d.fail("ready", "", "%s: %s", c.Name, c.Reason)
		case c.Reason != "":
			d.warn("ready", "", "%s: %s", c.Name, c.Reason)
		}
	}
	if resp.StatusCode == http.StatusOK {
		d.ok("ready", "the service is ready")
	}
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/natstest"
)

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// doctorOf runs the doctor on a configuration.
func doctorOf(t *testing.T, text string) (result, map[string][]finding) {
	t.Helper()
	path := file(t, "tripline.yaml", text)
	r := tripline(t, "", "doctor", "-c", path, "--json", "--timeout", "2s")
	var said struct{ Findings []finding }
	if err := json.Unmarshal([]byte(r.out), &said); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	by := map[string][]finding{}
	for _, f := range said.Findings {
		by[f.Level] = append(by[f.Level], f)
	}
	return r, by
}

// expect checks that a finding of a level says something.
func expect(t *testing.T, found map[string][]finding, level, text string) {
	t.Helper()
	for _, f := range found[level] {
		if strings.Contains(f.What+": "+f.Text+" "+f.Do, text) {
			return
		}
	}
	t.Errorf("no %s with %q in %+v", level, text, found)
}

func TestDoctorFindsAHealthyServiceWell(t *testing.T) {
	l := startService(t)
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(l.admin)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(l.nats)
	if err != nil {
		t.Fatal(err)
	}
	os.Unsetenv("NATS_URL")
	known := strings.NewReplacer(
		`listen: "127.0.0.1:0", token`, `listen: "`+at.Host+`", token`,
		`listen: "127.0.0.1:0", max`, `listen: "`+server.Host+`", max`,
	).Replace(string(text))
	if err := os.WriteFile(l.path, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	r := tripline(t, "", "doctor", "-c", l.path)
	if r.code != exitOK || !strings.HasSuffix(r.out, " 0 fail\n") {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{
		"ok    nats       version ", "ok    store ", "all looked at", "ok    clock ",
		"hook: http://127.0.0.1:", "can be connected to", "answers, with 2 consumers", "the service is ready",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
}

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	clean(t)
	nats := natstest.Start(t)
	health := serve(t, http.NotFoundHandler())
	r, found := doctorOf(t, `
nats: {url: "`+nats.URL+`"}
admin: {listen: "`+strings.TrimPrefix(health, "http://")+`", token: short}
consumers:
  - name: gone
    webhook: {url: "http://127.0.0.1:1/hook", timeout: 1s}
  - name: sick
    webhook: {url: "`+health+`", timeout: 1s, health: "`+health+`/health"}
  - name: inside
    webhook: {url: "`+health+`", timeout: 1s, egress: public}
  - name: stream
    jetstream: {subject: "nowhere.{device}"}
`)
	if r.code != exitFailure {
		t.Errorf("exit code %d", r.code)
	}
	expect(t, found, levelFail, "gone: http://127.0.0.1:1/hook can't be reached")
	expect(t, found, levelWarn, "sick: "+health+"/health answers 404")
	expect(t, found, levelFail, "egress: public forbids")
	expect(t, found, levelFail, "stream: no stream takes nowhere.{device}")
	expect(t, found, levelWarn, "nats sync: ")
	expect(t, found, levelWarn, "admin.token has only 5 characters")
	expect(t, found, levelFail, "admin: ")
	expect(t, found, levelOK, "none yet")
	for level, list := range found {
		for _, f := range list {
			if strings.Contains(f.Text, "\n") {
				t.Errorf("%s: more than one line: %q", level, f.Text)
			}
		}
	}
}

func TestDoctorWithoutAServer(t *testing.T) {
	clean(t)
	r, found := doctorOf(t, `
nats: {url: "nats://user:secret@127.0.0.1:1"}
admin: {listen: "127.0.0.1:1"}
consumers: [{name: bus, nats: {subject: "out.{device}"}}]
`)
	if r.code != exitFailure || strings.Contains(r.out, "secret") {
		t.Errorf("got %+v", r)
	}
	expect(t, found, levelFail, "cannot be reached")
	expect(t, found, levelOK, "no service is running")

	r, found = doctorOf(t, "consumers: [{nmae: bus}]")
	if r.code != exitFailure {
		t.Errorf("got %+v", r)
	}
	expect(t, found, levelFail, "nmae")
}

// A stream in memory, and one that is nearly full, are told; others' are not
// looked at.
func TestDoctorSeesStreamsThatCanLoseSomething(t *testing.T) {
	clean(t)
	srv := natstest.Start(t)
	js := srv.JetStream(t)
	for _, c := range []jetstream.StreamConfig{
		{Name: "TRIPLINE_LOCATIONS", Subjects: []string{"location.*"}, Storage: jetstream.MemoryStorage, MaxBytes: 1 << 20},
		{Name: "TRIPLINE_STATE", Subjects: []string{"state.*"}, MaxBytes: 1000},
		{Name: "OTHERS", Subjects: []string{"others.*"}, Storage: jetstream.MemoryStorage},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "state.x", make([]byte, 850)); err != nil {
		t.Fatal(err)
	}
	_, found := doctorOf(t, `
nats: {url: "`+srv.URL+`", max_store: 1GiB}
admin: {listen: "127.0.0.1:1"}
consumers: [{name: bus, nats: {subject: "out.{device}"}}]
`)
	expect(t, found, levelFail, "TRIPLINE_LOCATIONS is kept in memory")
	expect(t, found, levelWarn, "TRIPLINE_STATE is 89 % full")
	expect(t, found, levelOK, "2, all looked at")
	expect(t, found, levelOK, "the NATS server's clock differs")
}

// What an account doesn't allow is told before the service finds out.
func TestDoctorCountsTheStreams(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	account, err := s.Nats().LookupAccount(server.DEFAULT_GLOBAL_ACCOUNT)
	if err != nil {
		t.Fatal(err)
	}
	look := func(streams int) map[string][]finding {
		t.Helper()
		if err := account.UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": {
			MaxMemory: -1, MaxStore: 4 << 30, MaxStreams: streams, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
		}}); err != nil {
			t.Fatal(err)
		}
		_, found := doctorOf(t, `
nats: {url: "`+s.URL+`", max_store: 1GiB}
fences: [{kv: true}]
admin: {listen: "127.0.0.1:1"}
consumers: [{name: bus, nats: {subject: "out.{device}"}}]
`)
		return found
	}
	expect(t, look(5), levelFail, "the account may have 5 streams, and 6 are needed")
	if enough := look(6); len(enough[levelFail]) > 0 {
		t.Errorf("6 are too few: %v", enough[levelFail])
	}
	// The service has as many as the doctor says.
	cfg, err := config.Parse("t.yaml", []byte(`
nats: {url: "`+s.URL+`", max_store: 1GiB}
fences: [{kv: true}]
admin: {listen: "127.0.0.1:0"}
consumers: [{name: bus, nats: {subject: "out.{device}"}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := app.Run(ctx, cfg, app.Options{Log: slog.New(slog.DiscardHandler), Started: func(app.Started) { cancel() }}); err != nil {
		t.Error(err)
	}
	if info, err := s.JetStream(t).AccountInfo(t.Context()); err != nil || info.Streams != 6 {
		t.Errorf("the service has %d streams, %v", info.Streams, err)
	}
}

func TestDoctorJudgesTheClocks(t *testing.T) {
	for skew, level := range map[time.Duration]string{
		-time.Second: levelOK, 3 * time.Second: levelWarn, -5 * time.Minute: levelFail,
	} {
		var d doctor
		d.judgeSkew(skew)
		if len(d.found) != 1 || d.found[0].Level != level {
			t.Errorf("%v: %+v, want %s", skew, d.found, level)
		}
	}
}

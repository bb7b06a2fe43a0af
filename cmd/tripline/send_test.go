package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/natstest"
)

// answer plays the service: it answers submits with a text, and hands on what
// came in.
func answer(t *testing.T, s *natstest.Server, text string) <-chan *nats.Msg {
	t.Helper()
	nc := s.Conn(t)
	got := make(chan *nats.Msg, 10)
	if _, err := nc.Subscribe("*.submit.>", func(m *nats.Msg) {
		got <- m
		m.Respond([]byte(text))
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSend(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	got := answer(t, s, `{"ok":true,"seq":12,"transitions":1}`)
	tests := []struct {
		name          string
		args          []string
		subject, body string
	}{
		{"the least", []string{"van-1", "52.5", "13.4"}, "tripline.submit.van-1", `{"lat":52.5,"lon":13.4}`},
		{"negative coordinates, another namespace", []string{"fleet.van-1", "-33.9", "-.5", "--namespace", "other"}, "other.submit.fleet.van-1", `{"lat":-33.9,"lon":-0.5}`},
		{"all of it", []string{"v", "1", "2", "--ts", "2026-01-31T09:30:00Z", "--accuracy", "8", "--speed=1.5", "--heading", "270", "--alt", "-3", "--props", `{"a":1}`}, "tripline.submit.v",
			`{"lat":1,"lon":2,"ts":"2026-01-31T09:30:00Z","accuracy":8,"speed":1.5,"heading":270,"alt":-3,"props":{"a":1}}`},
		{"a ts that is a number", []string{"v", "1", "2", "--ts", "1767225600"}, "tripline.submit.v", `{"lat":1,"lon":2,"ts":1767225600}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tripline(t, "", append([]string{"send", "-s", s.URL}, tt.args...)...)
			if r.code != exitOK || r.out != "ok: stored as 12, 1 transition\n" || r.err != "" {
				t.Fatalf("got %+v", r)
			}
			if m := <-got; m.Subject != tt.subject || string(m.Data) != tt.body {
				t.Errorf("sent %s to %s, want %s to %s", m.Data, m.Subject, tt.body, tt.subject)
			}
		})
	}
	r := tripline(t, "", "send", "-s", s.URL, "v", "1", "2", "--json")
	if r.code != exitOK || r.out != `{"ok":true,"seq":12,"transitions":1}`+"\n" {
		t.Errorf("got %+v", r)
	}
}

func TestSendRefused(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	t.Setenv("NATS_URL", s.URL)
	const text = `{"ok":false,"transitions":0,"reason":"late","error":"older than the newest fix of v"}`
	answer(t, s, text)
	r := tripline(t, "", "send", "v", "1", "2")
	if r.code != exitFailure || r.out != "" || r.err != "tripline: refused (late): older than the newest fix of v\n" {
		t.Errorf("got %+v", r)
	}
	r = tripline(t, "", "send", "v", "1", "2", "--json")
	if r.code != exitFailure || r.out != text+"\n" || r.err != "" {
		t.Errorf("got %+v", r)
	}
}

func TestSendToNobody(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	r := tripline(t, "", "send", "-s", s.URL, "v", "1", "2")
	if r.code != exitFailure || !strings.Contains(r.err, "start tripline run there, or correct --server or --namespace") {
		t.Errorf("got %+v", r)
	}
	silent := s.Conn(t)
	if _, err := silent.SubscribeSync("tripline.submit.v"); err != nil {
		t.Fatal(err)
	}
	if err := silent.Flush(); err != nil {
		t.Fatal(err)
	}
	r = tripline(t, "", "send", "-s", s.URL, "v", "1", "2", "--timeout", "50ms")
	if r.code != exitFailure || !strings.Contains(r.err, "no answer within 50ms") {
		t.Errorf("got %+v", r)
	}
	s.Stop()
	r = tripline(t, "", "send", "-s", s.URL, "v", "1", "2")
	if r.code != exitFailure || !strings.Contains(r.err, "cannot be reached") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestR13_SendHidesThePassword(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	s.Stop()
	withSecret := strings.Replace(s.URL, "nats://", "nats://ann:hunter2@", 1)
	if r := tripline(t, "", "send", "-s", withSecret, "v", "1", "2"); r.code != exitFailure || strings.Contains(r.err, "hunter2") {
		t.Errorf("got %+v", r)
	}
}

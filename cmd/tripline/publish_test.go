package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/natstest"
)

// locations makes a stream that takes what devices publish.
func locations(t *testing.T, s *natstest.Server, maxBytes int64) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	js := s.JetStream(t)
	st, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "LOC", Subjects: []string{"location.*"}, Discard: jetstream.DiscardNew, MaxBytes: maxBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	return js, st
}

// stored lists the messages of the stream as "subject payload".
func stored(t *testing.T, st jetstream.Stream) []string {
	t.Helper()
	info, err := st.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
		m, err := st.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Subject+" "+string(m.Data))
	}
	return all
}

var seconds = regexp.MustCompile(`in [0-9.µm]+s \([0-9,]+/s\)`)

func TestPublish(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	csv := file(t, "t.csv", "device,ts,lat,lon,accuracy,speed,heading,alt\na,2026-01-01T00:00:00Z,52.5,13.4,,,,\nb,1767225600,1,-2,3,4,5,-6\na,2026-01-01T00:00:01.5Z,52.6,13.5,,,,\n")
	r := tripline(t, "", "publish", csv, "-s", s.URL)
	if r.code != exitOK || r.err != "" || seconds.ReplaceAllString(r.out, "in T") != "published 3 fixes of 2 devices in T, 0 of them already there\n" {
		t.Fatalf("got %+v", r)
	}
	want := []string{
		`location.a {"lat":52.5,"lon":13.4,"ts":1767225600000}`,
		`location.b {"lat":1,"lon":-2,"ts":1767225600000,"accuracy":3,"speed":4,"heading":5,"alt":-6}`,
		`location.a {"lat":52.6,"lon":13.5,"ts":1767225601500}`,
	}
	if got := stored(t, st); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("stored\n%s", strings.Join(got, "\n"))
	}
	r = tripline(t, "", "publish", csv, "-s", s.URL)
	if r.code != exitOK || seconds.ReplaceAllString(r.out, "in T") != "published 3 fixes of 2 devices in T, 3 of them already there\n" {
		t.Errorf("again: got %+v", r)
	}
	if got := stored(t, st); len(got) != 3 {
		t.Errorf("the same file again stored something: %v", got)
	}
	var told struct {
		Published, Devices, Duplicates int
		Refused                        map[string]int
		Seconds                        float64
	}
	r = tripline(t, "", "publish", csv, "-s", s.URL, "--json")
	if err := json.Unmarshal([]byte(r.out), &told); err != nil || r.code != exitOK || told.Published != 3 || told.Devices != 2 || told.Duplicates != 3 || told.Refused == nil || told.Seconds <= 0 {
		t.Errorf("as JSON: got %+v, %v", r, err)
	}
}

func TestPublishOtherFormats(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	r := tripline(t, `{"device":"n","ts":1767225600,"lat":1,"lon":2,"props":{"load": 3}}`, "publish", "-", "-s", s.URL)
	if r.code != exitOK {
		t.Fatalf("got %+v", r)
	}
	gpx := file(t, "ride.gpx", `<gpx><trk><trkseg><trkpt lat="1" lon="2"><time>2026-01-01T00:00:00Z</time></trkpt></trkseg></trk></gpx>`)
	if r := tripline(t, "", "publish", gpx, "-s", s.URL, "--speed", "1000x", "--subject", "location.gpx-{device}"); r.code != exitOK {
		t.Fatalf("got %+v", r)
	}
	want := "location.n {\"lat\":1,\"lon\":2,\"ts\":1767225600000,\"props\":{\"load\": 3}}\nlocation.gpx-ride {\"lat\":1,\"lon\":2,\"ts\":1767225600000}"
	if got := strings.Join(stored(t, st), "\n"); got != want {
		t.Errorf("stored\n%s", got)
	}
}

// many is a file of n fixes of one device. All are of one size, so that none
// finds room in a full stream where the one before it found none.
func many(n int) string {
	var b strings.Builder
	b.WriteString("device,ts,lat,lon\n")
	for i := range n {
		fmt.Fprintf(&b, "v,%d,1,%d.5\n", 1767225600+i, i%10)
	}
	return b.String()
}

func TestPublishKeepsOrderOverAFullStreamAndARestart(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	js, st := locations(t, s, 64<<10) // room for some of them
	const n = 3000
	done := make(chan result, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- tripline(t, many(n), "publish", "-", "-s", s.URL) })
	defer wg.Wait()
	eventually(t, "the stream is full", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Msgs > 100 && info.State.Bytes > 63<<10
	})
	s.Restart(t)
	eventually(t, "room is made", func() bool {
		cfg := st.CachedInfo().Config
		cfg.MaxBytes = -1
		_, err := js.UpdateStream(t.Context(), cfg)
		return err == nil
	})
	r := <-done
	if r.code != exitOK || !strings.Contains(r.out, "published 3,000 fixes of 1 device ") || !strings.Contains(r.out, "sent again") {
		t.Errorf("got %+v", r)
	}
	all := stored(t, st)
	if len(all) != n {
		t.Fatalf("%d stored, want %d", len(all), n)
	}
	for i, m := range all {
		if !strings.Contains(m, fmt.Sprintf(`"ts":%d000}`, 1767225600+i)) {
			t.Fatalf("message %d is %s", i, m)
		}
	}
}

func TestPublishGivesUp(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	r := tripline(t, many(3), "publish", "-", "-s", s.URL, "--retry-for", "10ms")
	if r.code != exitFailure || !strings.Contains(r.err, "nobody takes location.v: start tripline run, and let --subject fit its ingest.subjects") {
		t.Errorf("no stream: got %+v", r)
	}
	locations(t, s, 300)
	r = tripline(t, many(30), "publish", "-", "-s", s.URL, "--retry-for", "10ms")
	if r.code != exitFailure || !strings.Contains(r.err, "the stream of locations is full") || !strings.Contains(r.out, "published ") {
		t.Errorf("full: got %+v", r)
	}
}

func TestPublishLosesItsServer(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	in, more := io.Pipe()
	done := make(chan result, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		var out, errs bytes.Buffer
		code := run(streams{ctx: t.Context(), in: in, out: &out, err: &errs}, []string{"publish", "-", "-s", s.URL, "--retry-for", "200ms"})
		in.Close()
		done <- result{code, out.String(), errs.String()}
	})
	defer wg.Wait()
	io.WriteString(more, many(10))
	eventually(t, "the first are stored", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Msgs == 10
	})
	s.Stop()
	io.WriteString(more, strings.ReplaceAll(many(20), "device,ts,lat,lon\n", ""))
	more.Close()
	if r := <-done; r.code != exitFailure || !strings.Contains(r.err, "the connection to NATS is lost") || !strings.Contains(r.out, "fixes of 1 device") {
		t.Errorf("got %+v", r)
	}
}

func TestPublishInCoreMode(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	nc := s.Conn(t)
	n := 0
	if _, err := nc.Subscribe("location.*", func(m *nats.Msg) {
		n++
		text := `{"ok":true,"seq":1,"transitions":0}`
		switch n {
		case 2:
			text = `{"ok":false,"reason":"duplicate","error":"x"}`
		case 3:
			text = `{"ok":false,"reason":"late","error":"x"}`
		}
		m.Respond([]byte(text))
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r := tripline(t, many(4), "publish", "-", "-s", s.URL)
	if r.code != exitFailure || seconds.ReplaceAllString(r.out, "in T") != "published 3 fixes of 1 device in T, 1 of them already there, 1 refused (late)\n" {
		t.Errorf("got %+v", r)
	}
}

func TestPublishOfBadRows(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	csv := file(t, "t.csv", "device,ts,lat,lon\nv,1767225600,1,2\nv 2,1767225601,1,2\nv,never,1,2\nv,1767225602,1,2\n")
	r := tripline(t, "", "publish", csv, "-s", s.URL)
	if r.code != exitFailure || !strings.Contains(r.err, csv+`:3: device "v 2" can't be part of a NATS subject`) {
		t.Errorf("got %+v", r)
	}
	r = tripline(t, "", "publish", csv, "-s", s.URL, "--skip-bad")
	if r.code != exitOK || !strings.Contains(r.out, "published 2 fixes of 1 device in ") || !strings.Contains(r.out, ", 2 passed over, no fixes") {
		t.Errorf("got %+v", r)
	}
	if all := stored(t, st); len(all) != 2 {
		t.Errorf("stored %v", all)
	}
}

func TestPublishInterrupted(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		done <- triplineWithin(t, ctx, "device,ts,lat,lon\nv,1767225600,1,2\nv,1767229200,1,2\n", "publish", "-", "-s", s.URL, "--speed", "1x")
	})
	defer wg.Wait()
	eventually(t, "the first is stored", func() bool {
		info, err := st.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	})
	cancel()
	if r := <-done; r.code != exitFailure || !strings.Contains(r.err, "interrupted") || !strings.Contains(r.out, "published 1 fixes of 1 device") {
		t.Errorf("got %+v", r)
	}
}

func TestPublishShowsProgress(t *testing.T) {
	clean(t)
	s := natstest.Start(t)
	_, st := locations(t, s, -1)
	for _, name := range []string{file(t, "t.csv", many(300)), "-"} {
		var out, errs bytes.Buffer
		code := run(streams{ctx: t.Context(), in: strings.NewReader(many(300)), out: &out, err: &errs, terminal: true}, []string{"publish", name, "-s", s.URL})
		if code != exitOK || !strings.Contains(errs.String(), "publishing") || strings.Contains(out.String(), "\r") {
			t.Errorf("%s: got %d, %q, %q", name, code, out.String(), errs.String())
		}
	}
	if all := stored(t, st); len(all) != 300 {
		t.Errorf("%d stored", len(all))
	}
}

// What a server answers is not always what it should be.
func TestReadAck(t *testing.T) {
	tests := []struct{ data, status, want string }{
		{`{"stream":"S","seq":1}`, "", ""},
		{`{"stream":"S","seq":1,"duplicate":true}`, "", ""},
		{`{"ok":true,"seq":1}`, "", ""},
		{`{"ok":false,"reason":"late","error":"x"}`, "", ""},
		{`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"S","seq":0}`, "", "maximum bytes exceeded"},
		{`{"error":{},"stream":"S"}`, "", "no acknowledgement"},
		{`{}`, "", "no acknowledgement"},
		{`hello`, "", "no acknowledgement"},
		{``, "503", "no responders"},
	}
	for _, tt := range tests {
		msg := &nats.Msg{Data: []byte(tt.data), Header: nats.Header{}}
		if tt.status != "" {
			msg.Header.Set("Status", tt.status)
		}
		_, err := readAck(msg)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.data, err, tt.want)
		}
	}
}

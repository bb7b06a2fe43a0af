package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natstest"
)

func config(t testing.TB, partitions int) ingest.StreamConfig {
	return ingest.StreamConfig{Patterns: patterns(t), Partitions: partitions, MaxBytes: 10 << 20}
}

func TestSetUpStreamMakesItAndLeavesItWhenItFits(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	for range 2 {
		if err := ingest.SetUpStream(t.Context(), js, config(t, 8)); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), "TRIPLINE_LOCATIONS")
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if got, want := fmt.Sprint(c.Subjects), "[location.* owntracks.*.* tripline.tick.*]"; got != want {
		t.Errorf("subjects %s, want %s", got, want)
	}
	if c.Storage != jetstream.FileStorage || c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardNew ||
		c.MaxBytes != 10<<20 || c.MaxAge != 0 || c.SubjectTransform == nil || c.SubjectTransform.Destination != "loc.{{partition(8)}}.>" {
		t.Errorf("got %+v", c)
	}
}

func TestSetUpStreamBringsAnOldOneInLine(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	setUp(t, js, 8)
	p, err := ingest.ParsePatterns(namespace, []string{"location.*", "gps.*.*"})
	if err != nil {
		t.Fatal(err)
	}
	if err := ingest.SetUpStream(t.Context(), js, ingest.StreamConfig{Patterns: p, Partitions: 8, MaxBytes: 20 << 20}); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "TRIPLINE_LOCATIONS")
	if err != nil {
		t.Fatal(err)
	}
	if c := stream.CachedInfo().Config; c.MaxBytes != 20<<20 || c.Subjects[1] != "gps.*.*" {
		t.Errorf("got %+v", c)
	}
}

func TestSetUpStreamSaysWhatIsInTheWay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before *jetstream.StreamConfig // made beforehand
		parts  int                     // partitions of a location stream made beforehand
		bytes  int64
		want   []string
	}{
		{"another number of partitions", nil, 4, 0, []string{"4 partitions", "ingest.partitions is 8", "set it to 4"}},
		{"a stream of somebody else with that name", &jetstream.StreamConfig{Name: "TRIPLINE_LOCATIONS", Subjects: []string{"x"}}, 0, 0,
			[]string{"not made by the router", "nats stream rm"}},
		{"a stream that captures a subject", &jetstream.StreamConfig{Name: "FLEET", Subjects: []string{"location.>"}}, 0, 0,
			[]string{"stream FLEET captures location.* already", "ingest.subjects"}},
		{"no room", nil, 0, 1 << 40, []string{"lower ingest.max_bytes", "nats.max_store"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			js := natstest.Start(t).JetStream(t)
			if tc.before != nil {
				if _, err := js.CreateStream(t.Context(), *tc.before); err != nil {
					t.Fatal(err)
				}
			}
			if tc.parts > 0 {
				setUp(t, js, tc.parts)
			}
			cfg := config(t, 8)
			cfg.MaxBytes = max(cfg.MaxBytes, tc.bytes)
			err := ingest.SetUpStream(t.Context(), js, cfg)
			if err == nil {
				t.Fatal("it was set up")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestTrimRemovesWhatIsOldAndNotNeeded(t *testing.T) {
	d := newDurable(t, 2)
	for i := range 100 {
		d.store(t, "location.a", location(i))
	}
	needed := uint64(41)
	trim := ingest.Trim{
		Source:     d.source,
		Retention:  time.Nanosecond,
		ReplayFrom: func(context.Context) (uint64, error) { return needed, nil },
	}
	first := func() (first uint64, last uint64) {
		stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().State.FirstSeq, stream.CachedInfo().State.LastSeq
	}
	if _, err := trim.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f, _ := first(); f != needed {
		t.Fatalf("the stream begins at %d, want %d", f, needed)
	}
	// Something held it back: each partition was told the time, so that one
	// that nothing comes for moves on.
	if _, l := first(); l != 102 {
		t.Fatalf("the stream ends at %d, want 2 ticks more than 100", l)
	}
	needed = 1000
	if _, err := trim.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f, _ := first(); f != 103 {
		t.Fatalf("the stream begins at %d, want 103", f)
	}
	trim.Retention = time.Hour
	d.store(t, "location.a", location(0))
	if more, err := trim.Step(t.Context()); more || err != nil {
		t.Fatalf("got %v, %v", more, err)
	}
	if f, l := first(); f != 103 || l != 103 {
		t.Fatalf("the stream is %d to %d: something younger than the retention was removed", f, l)
	}
}

func TestTrimTakesALittleAtATime(t *testing.T) {
	d := newDurable(t, 1)
	stream := func() jetstream.StreamState {
		s, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State
	}
	for s := stream(); s.LastTime.Sub(s.FirstTime) < 200*time.Millisecond; s = stream() {
		d.store(t, "location.a", location(0))
	}
	before := stream()
	trim := ingest.Trim{
		Source: d.source, Retention: time.Nanosecond, Span: 50 * time.Millisecond,
		ReplayFrom: func(context.Context) (uint64, error) { return before.LastSeq + 1, nil },
	}
	more, err := trim.Step(t.Context())
	if err != nil || !more {
		t.Fatalf("got %v, %v", more, err)
	}
	after := stream()
	if after.FirstSeq == before.FirstSeq || after.Msgs == 0 {
		t.Fatalf("the stream began at %d and begins at %d", before.FirstSeq, after.FirstSeq)
	}
	if taken := after.FirstTime.Sub(before.FirstTime); taken < trim.Span || taken > 3*trim.Span {
		t.Errorf("%v worth was taken at once, want about %v", taken, trim.Span)
	}
	steps := 1
	for ; more; steps++ {
		if more, err = trim.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after = stream(); after.Msgs != 0 || steps < 3 {
		t.Errorf("after %d steps %d messages are left", steps, after.Msgs)
	}
}

func TestTrimRunsUntilItIsStopped(t *testing.T) {
	d := newDurable(t, 1)
	for i := range 10 {
		d.store(t, "location.a", location(i))
	}
	failed := make(chan error, 8)
	run := func(replayFrom func(context.Context) (uint64, error)) (stop func()) {
		trim := ingest.Trim{
			Source: d.source, Retention: time.Nanosecond, Span: time.Hour,
			ReplayFrom: replayFrom, Failed: func(err error) { failed <- err },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- trim.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := run(func(context.Context) (uint64, error) { return 0, context.DeadlineExceeded })
	if err := <-failed; !strings.Contains(err.Error(), "trimming TRIPLINE_LOCATIONS") {
		t.Errorf("got %v", err)
	}
	stop()
	stop = run(func(context.Context) (uint64, error) { return 11, nil })
	eventually(t, "the stream is empty", func() bool {
		stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace))
		return err == nil && stream.CachedInfo().State.Msgs == 0
	})
	stop()
}

func TestSetUpStreamNeverGivesOutAPositionAgain(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	cfg := config(t, 4)
	cfg.After = 500 // a stream before this one got so far
	for _, want := range []uint64{501, 601} {
		if err := ingest.SetUpStream(t.Context(), js, cfg); err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(t.Context(), "location.a", []byte(location(0)))
		if err != nil || ack.Sequence != want {
			t.Fatalf("got %v, %v; want %d", ack, err, want)
		}
		cfg.After = 600 // the end of the stream was lost
	}
	cfg.After = 10_000_000
	err := ingest.SetUpStream(t.Context(), js, cfg)
	if err == nil || !strings.Contains(err.Error(), "nats stream rm TRIPLINE_LOCATIONS") {
		t.Fatalf("got %v", err)
	}
}

package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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

func TestTrimTakesTenSecondsAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as the span of stored time that it needs")
	}
	d := newDurable(t, 1)
	d.store(t, "location.a", location(0))
	// Two messages that lie more than a step apart, without the wait: the
	// second is stored by a source stream's own time.
	t.Skip("needs stored times in the past")
}

func TestServerComputesTheSamePartition(t *testing.T) {
	d := newDurable(t, 16)
	for i := range 50 {
		d.store(t, fmt.Sprintf("owntracks.user-%d.ü%d", i, i*i), location(i))
	}
	for p := range 16 {
		if err := d.source.Tick(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
	}
	read := 0
	for p := range 16 {
		stream, err := d.js.Stream(t.Context(), ingest.StreamName(namespace), jetstream.WithSubjectFilter(fmt.Sprintf("loc.%d.>", p)))
		if err != nil {
			t.Fatal(err)
		}
		_ = stream
		read++
	}
	_ = read
}

var _ = server.RANDOM_PORT

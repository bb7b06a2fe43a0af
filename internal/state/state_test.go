package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/internal/state"
	"github.com/tripline/tripline/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(partitions int) state.Config {
	return state.Config{Namespace: "acme", Partitions: partitions, MaxBytes: 1 << 30}
}

func open(t testing.TB, js jetstream.JetStream, cfg state.Config) *state.Store {
	t.Helper()
	s, err := state.Open(t.Context(), js, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func claim(t testing.TB, s *state.Store, partition int) router.Saved {
	t.Helper()
	saved, err := s.Claim(t.Context(), partition)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func commit(t testing.TB, s *state.Store, partition int, p router.Progress) {
	t.Helper()
	if err := s.Commit(t.Context(), partition, p); err != nil {
		t.Fatal(err)
	}
}

// subjects counts what the stream holds under a part of its subjects.
func subjects(t *testing.T, js jetstream.JetStream, filter string) map[string]uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), "ACME_STATE")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(filter))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Subjects
}

func presence(device, content string) router.DevicePresence {
	return router.DevicePresence{Device: device, Encoded: []byte(content)}
}

func TestCommitIsLoadedByTheNextClaim(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(4))
	if saved := claim(t, s, 2); saved.Offset != 0 || saved.ReplayFrom != 0 || len(saved.Presences) != 0 {
		t.Fatalf("a new partition starts from %+v", saved)
	}
	odd := "fleet north.*.>.ü\n" + strings.Repeat("x", 200)
	commit(t, s, 2, router.Progress{Offset: 7, ReplayFrom: 5, Clock: 99, Presences: []router.DevicePresence{
		presence("a", "first"), presence("fleet.b", "b"), presence(odd, "odd"),
	}})
	commit(t, s, 2, router.Progress{Offset: 9, ReplayFrom: 8, Clock: 100, Presences: []router.DevicePresence{presence("a", "second")}})

	saved := claim(t, open(t, js, config(4)), 2)
	want := map[string]string{"a": "second", "fleet.b": "b", odd: "odd"}
	got := map[string]string{}
	for id, enc := range saved.Presences {
		got[id] = string(enc)
	}
	if !maps.Equal(got, want) {
		t.Errorf("presences %q, want %q", got, want)
	}
	if saved.Offset != 9 || saved.ReplayFrom != 8 || saved.Clock != 100 {
		t.Errorf("progress %+v, want 9, 8, 100", saved)
	}
	if other := claim(t, s, 3); len(other.Presences) != 0 || other.Offset != 0 {
		t.Errorf("partition 3 sees partition 2's state: %+v", other)
	}
}

func TestCommitOfAnOldOwnerIsFencedAndStoresNothing(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	old, owner := open(t, js, config(2)), open(t, js, config(2))
	claim(t, old, 0)
	claim(t, old, 1)
	commit(t, old, 0, router.Progress{Offset: 1, Presences: []router.DevicePresence{presence("a", "old")}})
	claim(t, owner, 0)

	many := router.Progress{Offset: 50}
	for i := range 2500 {
		many.Presences = append(many.Presences, presence(fmt.Sprintf("d%d", i), "stolen"))
	}
	for _, step := range []router.Progress{
		{Offset: 50}, {Offset: 50, Presences: []router.DevicePresence{presence("a", "stolen")}}, many,
	} {
		if err := old.Commit(t.Context(), 0, step); !errors.Is(err, router.ErrFenced) {
			t.Errorf("commit of %d presences by the old owner: %v, want ErrFenced", len(step.Presences), err)
		}
	}
	if got := subjects(t, js, "acme.state.presence.0.>"); len(got) != 1 {
		t.Errorf("%d presences are stored, want the one from before", len(got))
	}
	commit(t, owner, 0, router.Progress{Offset: 2})
	commit(t, old, 1, router.Progress{Offset: 3}) // the other partition is still its own
	if saved := claim(t, owner, 0); saved.Offset != 2 || string(saved.Presences["a"]) != "old" {
		t.Errorf("stored: %+v", saved)
	}
}

func TestLongFlushGoesInSeveralBatches(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	claim(t, s, 0)
	step := router.Progress{Offset: 10, ReplayFrom: 4}
	for i := range 3456 {
		step.Presences = append(step.Presences, presence(fmt.Sprintf("d.%d", i), fmt.Sprint("p", i)))
	}
	commit(t, s, 0, step)
	saved := claim(t, open(t, js, config(1)), 0)
	if len(saved.Presences) != 3456 || saved.Offset != 10 || saved.ReplayFrom != 4 {
		t.Fatalf("loaded %d presences, offset %d, replay_from %d", len(saved.Presences), saved.Offset, saved.ReplayFrom)
	}
	for i := range 3456 {
		if got := saved.Presences[fmt.Sprintf("d.%d", i)]; string(got) != fmt.Sprint("p", i) {
			t.Fatalf("presence of d.%d is %q", i, got)
		}
	}
}

func TestRemovedPresenceLeavesNoTrace(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	claim(t, s, 0)
	var step router.Progress
	for i := range 1500 {
		step.Presences = append(step.Presences, presence(fmt.Sprint("d", i), "x"))
	}
	commit(t, s, 0, step)
	for i := range step.Presences {
		if i%3 == 0 {
			step.Presences[i].Encoded = nil
		}
	}
	commit(t, s, 0, step)
	commit(t, s, 0, router.Progress{Offset: 1, Presences: []router.DevicePresence{{Device: "never.known"}}})
	got := subjects(t, js, "acme.state.presence.>")
	if len(got) != 1000 {
		t.Errorf("%d subjects are left, want 1000", len(got))
	}
	for i := range 1500 {
		_, there := got[fmt.Sprintf("acme.state.presence.0.d%d", i)]
		if there == (i%3 == 0) {
			t.Fatalf("presence of d%d is there: %v", i, there)
		}
	}
}

// A process that ends between the batch and the deletes leaves an empty
// message: the next claim takes it for what it is, and clears it away.
func TestRemovalIsFinishedByTheNextClaim(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	claim(t, s, 0)
	commit(t, s, 0, router.Progress{Presences: []router.DevicePresence{presence("a", "a"), presence("b", "b")}})
	if _, err := js.Publish(t.Context(), "acme.state.presence.0.a", nil); err != nil {
		t.Fatal(err)
	}
	if saved := claim(t, s, 0); len(saved.Presences) != 1 {
		t.Errorf("loaded %v", saved.Presences)
	}
	if got := subjects(t, js, "acme.state.presence.>"); len(got) != 1 {
		t.Errorf("stream still holds %v", got)
	}
}

func TestStateRefusesOtherPartitionCountAndNewerFormat(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	open(t, js, config(16))
	_, err := state.Open(t.Context(), js, config(8))
	if p, ok := errors.AsType[*state.PartitionsError](err); !ok || p.Stored != 16 || p.Configured != 8 {
		t.Errorf("8 partitions on a state of 16: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "set ingest.partitions to 16") {
		t.Errorf("error names no remedy: %v", err)
	}
	if _, err := js.Publish(t.Context(), "acme.state.meta", []byte(`{"format":2,"partitions":16}`)); err != nil {
		t.Fatal(err)
	}
	_, err = state.Open(t.Context(), js, config(16))
	if f, ok := errors.AsType[*state.FormatError](err); !ok || f.Stored != 2 || f.Readable != 1 {
		t.Errorf("format 2: %v", err)
	}
}

func TestMinReplayFromNeedsAllPartitions(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(3))
	for partition, from := range []uint64{30, 20, 0} {
		claim(t, s, partition)
		lowest, err := s.MinReplayFrom(t.Context())
		if err != nil || lowest != 0 {
			t.Errorf("after %d commits: %d, %v; want 0", partition, lowest, err)
		}
		if from > 0 {
			commit(t, s, partition, router.Progress{Offset: 40, ReplayFrom: from})
		}
	}
	commit(t, s, 2, router.Progress{Offset: 40, ReplayFrom: 25})
	if lowest, err := s.MinReplayFrom(t.Context()); err != nil || lowest != 20 {
		t.Errorf("lowest %d, %v; want 20", lowest, err)
	}
}

func TestCommitNeedsAClaim(t *testing.T) {
	s := open(t, natstest.Start(t).JetStream(t), config(1))
	if err := s.Commit(t.Context(), 0, router.Progress{}); err == nil {
		t.Error("a commit without a claim was stored")
	}
}

// R6: what a commit said is stored survives a restart of the server, and a
// commit that met the restart can be repeated.
func TestR6_StateSurvivesServerRestart(t *testing.T) {
	srv := natstest.Start(t)
	s := open(t, srv.JetStream(t), config(1))
	claim(t, s, 0)
	commit(t, s, 0, router.Progress{Offset: 1, ReplayFrom: 1, Presences: []router.DevicePresence{presence("a", "1")}})
	srv.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	err := s.Commit(ctx, 0, router.Progress{Offset: 2, ReplayFrom: 2, Presences: []router.DevicePresence{presence("a", "2")}})
	cancel()
	if err == nil || errors.Is(err, router.ErrFenced) {
		t.Fatalf("commit without a server: %v", err)
	}
	srv.Restart(t)
	repeat(t, func(ctx context.Context) error {
		return s.Commit(ctx, 0, router.Progress{Offset: 2, ReplayFrom: 2, Presences: []router.DevicePresence{presence("a", "2")}})
	})
	saved := claim(t, open(t, srv.JetStream(t), config(1)), 0)
	if saved.Offset != 2 || string(saved.Presences["a"]) != "2" {
		t.Errorf("after the restart: %+v", saved)
	}
}

// repeat does what a committer does with an unknown fate.
func repeat(t *testing.T, f func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if errors.Is(err, router.ErrFenced) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// While a commit's fate is unknown somebody else may take the partition: the
// repeat must see that, and not fence the new owner out.
func TestRepeatAfterUnknownFateDoesNotStealThePartition(t *testing.T) {
	srv := natstest.Start(t)
	old := open(t, srv.JetStream(t), config(1))
	claim(t, old, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := old.Commit(ctx, 0, router.Progress{Offset: 1, Presences: []router.DevicePresence{presence("a", "1"), presence("b", "1")}}); err == nil {
		t.Fatal("a commit whose context had ended answered nil")
	}
	owner := open(t, srv.JetStream(t), config(1))
	claim(t, owner, 0)
	if err := old.Commit(t.Context(), 0, router.Progress{Offset: 1}); !errors.Is(err, router.ErrFenced) {
		t.Errorf("repeat by the old owner: %v, want ErrFenced", err)
	}
	commit(t, owner, 0, router.Progress{Offset: 9})
}

func TestPartitionsCommitAtOnce(t *testing.T) {
	const partitions = 64 // more than the server takes batches at a time
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(partitions))
	var wg sync.WaitGroup
	errs := make([]error, partitions)
	for p := range partitions {
		wg.Go(func() {
			if _, err := s.Claim(t.Context(), p); err != nil {
				errs[p] = err
				return
			}
			for i := range 5 {
				step := router.Progress{Offset: uint64(i)}
				for d := range 40 {
					step.Presences = append(step.Presences, presence(fmt.Sprint(d), fmt.Sprint(p, i)))
				}
				if err := s.Commit(t.Context(), p, step); err != nil {
					errs[p] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for p := range partitions {
		saved := claim(t, s, p)
		if len(saved.Presences) != 40 || !bytes.Equal(saved.Presences["7"], fmt.Append(nil, p, 4)) {
			t.Fatalf("partition %d: %d presences, %q", p, len(saved.Presences), saved.Presences["7"])
		}
	}
}

// A full stream is a clean error, nothing is stored of the step, and there is
// a way out.
func TestFullStateIsACleanError(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	cfg := config(1)
	cfg.MaxBytes = 64 << 10
	s := open(t, js, cfg)
	claim(t, s, 0)
	large := bytes.Repeat([]byte("x"), 1000)
	var step router.Progress
	for i := range 100 {
		step.Presences = append(step.Presences, router.DevicePresence{Device: fmt.Sprint(i), Encoded: large})
	}
	err := s.Commit(t.Context(), 0, step)
	if err == nil || errors.Is(err, router.ErrFenced) {
		t.Fatalf("commit beyond max_bytes: %v", err)
	}
	if got := subjects(t, js, "acme.state.presence.>"); len(got) != 0 {
		t.Errorf("%d presences of the refused step are stored", len(got))
	}
	cfg.MaxBytes = 1 << 20
	open(t, js, cfg)
	commit(t, s, 0, step)
}

func TestStreamNameAndSubjects(t *testing.T) {
	js := natstest.Start(t).JetStream(t)
	s := open(t, js, config(1))
	claim(t, s, 0)
	commit(t, s, 0, router.Progress{Presences: []router.DevicePresence{presence("fleet.van7", "x")}})
	got := slices.Sorted(maps.Keys(subjects(t, js, ">")))
	want := []string{"acme.state.epoch.0", "acme.state.meta", "acme.state.presence.0.fleet=2Evan7", "acme.state.progress.0"}
	if !slices.Equal(got, want) {
		t.Errorf("subjects %q, want %q", got, want)
	}
}

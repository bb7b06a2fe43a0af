package router_test

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/natstest"
	"github.com/tripline/tripline/router"
)

func TestSlotAndPartitionAreFNV1a(t *testing.T) {
	for i := range 1000 {
		name := strings.Repeat("ü", i%5) + "device." + strconv.Itoa(i*7919)
		h := fnv.New32a()
		h.Write([]byte(name))
		if got, want := router.SlotOf(name), int(h.Sum32()%256); got != want {
			t.Fatalf("SlotOf(%q) = %d, want %d", name, got, want)
		}
		for _, p := range []int{1, 3, 16, 100} {
			if got, want := router.PartitionOf(name, p), int(h.Sum32()%uint32(p)); got != want {
				t.Fatalf("PartitionOf(%q, %d) = %d, want %d", name, p, got, want)
			}
		}
	}
}

// The server decides the partition of a stored location; the router decides
// it for submit, ticks and core mode. They must agree.
func TestPartitionOfEqualsServersTransform(t *testing.T) {
	const partitions = 16
	js := natstest.Start(t).JetStream(t)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name:     "LOC",
		Subjects: []string{"location.*", "owntracks.*.*", "tick.*"},
		SubjectTransform: &jetstream.SubjectTransformConfig{
			Source:      ">",
			Destination: fmt.Sprintf("loc.{{partition(%d)}}.>", partitions),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for i := range 60 {
		subjects = append(subjects,
			fmt.Sprintf("location.van-%d", i),
			fmt.Sprintf("owntracks.user%d.ph_öne%d", i*31, i),
			fmt.Sprintf("tick.%d", i))
	}
	for i, subject := range subjects {
		if _, err := js.Publish(t.Context(), subject, nil); err != nil {
			t.Fatal(err)
		}
		msg, err := stream.GetMsg(t.Context(), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("loc.%d.%s", router.PartitionOf(subject, partitions), subject)
		if msg.Subject != want {
			t.Errorf("the server stored %q as %q, we expect %q", subject, msg.Subject, want)
		}
	}
}

func TestSequenceOrderIsNumberOrder(t *testing.T) {
	places := []struct {
		pos uint64
		ord uint32
	}{{0, 0}, {0, 1}, {0, 9}, {0, 10}, {0, 999_999}, {1, 0}, {9, 5}, {10, 0}, {99, 1}, {100, 0},
		{1 << 32, 7}, {1<<64 - 1, 0}, {1<<64 - 1, 999_999}}
	last := ""
	for _, p := range places {
		s := router.Sequence(p.pos, p.ord)
		if len(s) != 27 {
			t.Errorf("Sequence(%d, %d) = %q: %d characters, want 27", p.pos, p.ord, s, len(s))
		}
		if s <= last {
			t.Errorf("Sequence(%d, %d) = %q is not above %q", p.pos, p.ord, s, last)
		}
		if want := fmt.Sprintf("%020d.%06d", p.pos, p.ord); s != want {
			t.Errorf("Sequence(%d, %d) = %q, want %q", p.pos, p.ord, s, want)
		}
		last = s
	}
}

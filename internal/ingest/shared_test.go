package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tripline/tripline/router"
)

// Partitions come and go at any position while others are read; each sees
// every message of its own from there on, once and in order.
func TestSharedReaderServesPartitionsThatComeAndGo(t *testing.T) {
	const partitions, devices, fixes, rounds, room = 8, 40, 20, 6, 10_000
	d := newDurable(t, partitions, true)
	mine := make([][]uint64, partitions) // sequences by partition
	fill := func() {
		for i := range fixes {
			for dev := range devices {
				subject := fmt.Sprintf("location.dev-%d", dev)
				p := router.PartitionOf(subject, partitions)
				mine[p] = append(mine[p], d.store(t, subject, location(i)))
			}
		}
	}
	fill()
	random := rand.New(rand.NewPCG(1, 2))
	var staying []*reading // read over all rounds, by partition
	for p := range 2 {
		staying = append(staying, start(d.source, p, 0, room))
	}
	for range rounds {
		readings := map[int]*reading{}
		from := map[int]int{}
		for p := 2; p < partitions; p++ {
			if len(mine[p]) == 0 || random.IntN(3) == 0 {
				continue
			}
			from[p] = random.IntN(len(mine[p]))
			readings[p] = start(d.source, p, mine[p][from[p]], room)
		}
		fill()
		for p, r := range readings {
			for _, want := range mine[p][from[p]:] {
				if m := r.next(t); m.Seq != want {
					t.Fatalf("partition %d: got sequence %d, want %d", p, m.Seq, want)
				}
			}
			r.stop()
			if err := <-r.done; err != nil {
				t.Fatal(err)
			}
		}
	}
	for p, r := range staying {
		for _, want := range mine[p] {
			if m := r.next(t); m.Seq != want {
				t.Fatalf("partition %d, read throughout: got sequence %d, want %d", p, m.Seq, want)
			}
		}
		r.stop()
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
	}
	if n := d.told.get(func(w *told) int { return int(w.lost) + len(w.rebuilt) }); n != 0 {
		t.Errorf("a reader broke, or lost something: %v", d.told.rebuilt)
	}
}

// Partitions that are read together are put on their own in the middle: each
// goes on where it was.
func TestSharedReaderSeparatesItsPartitions(t *testing.T) {
	const partitions, devices, fixes = 4, 20, 50
	d := newDurable(t, partitions, true)
	mine := make([][]uint64, partitions)
	fill := func() {
		for i := range fixes {
			for dev := range devices {
				subject := fmt.Sprintf("location.dev-%d", dev)
				p := router.PartitionOf(subject, partitions)
				mine[p] = append(mine[p], d.store(t, subject, location(i)))
			}
		}
	}
	fill()
	var readings []*reading
	for p := range partitions {
		readings = append(readings, start(d.source, p, 0, 1))
	}
	for p, r := range readings {
		if m := r.next(t); m.Seq != mine[p][0] {
			t.Fatalf("partition %d: got sequence %d, want %d", p, m.Seq, mine[p][0])
		}
	}
	d.source.Separate()
	fill()
	for p, r := range readings {
		for _, want := range mine[p][1:] {
			if m := r.next(t); m.Seq != want {
				t.Fatalf("partition %d: got sequence %d, want %d", p, m.Seq, want)
			}
		}
		r.stop()
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSharedReaderRefusesASecondReadOfAPartition(t *testing.T) {
	d := newDurable(t, 2, true)
	d.store(t, "location.a", location(0))
	p := router.PartitionOf("location.a", 2)
	read(t, d.source, p, 0).next(t)
	if err := d.source.Read(t.Context(), p, 0, make(chan *router.Batch)); err == nil {
		t.Fatal("it was read twice")
	}
}

func TestSharedReaderFailsTheOneThatCantBeReadOnly(t *testing.T) {
	d := newDurable(t, 2, true)
	d.store(t, "location.a", location(0))
	p := router.PartitionOf("location.a", 2)
	r := read(t, d.source, p, 0)
	r.next(t)
	if err := d.source.Read(t.Context(), 1-p, 500, make(chan *router.Batch)); err == nil {
		t.Fatal("positions that don't exist yet were taken as read")
	}
	d.store(t, "location.a", location(1))
	if m := r.next(t); m.Seq != 2 {
		t.Fatalf("got sequence %d, want 2", m.Seq)
	}
}

func TestR1_APartitionThatTakesNothingDoesNotHoldUpTheOthers(t *testing.T) {
	const fixes = 2000
	d := newDurable(t, 2, true)
	var subjects [2]string
	for i := 0; subjects[0] == "" || subjects[1] == ""; i++ {
		s := fmt.Sprintf("location.dev-%d", i)
		subjects[router.PartitionOf(s, 2)] = s
	}
	stuck, going := read(t, d.source, 0, 0), read(t, d.source, 1, 0)
	for i := range fixes {
		d.store(t, subjects[0], location(i))
	}
	for i := range fixes {
		d.store(t, subjects[1], location(i))
	}
	for i := range fixes {
		if m := going.next(t); m.Fix.TS != 1_700_000_000_000+int64(i) {
			t.Fatalf("fix %d: got %+v", i, m)
		}
	}
	// It misses nothing once it takes again.
	for i := range fixes {
		if m := stuck.next(t); m.Seq != uint64(i+1) {
			t.Fatalf("got sequence %d, want %d", m.Seq, i+1)
		}
	}
}

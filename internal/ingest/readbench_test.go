package ingest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

// benchPartitions is the default number of partitions.
const benchPartitions = 16

// BenchmarkFixRead reads one stored location per iteration out of a real
// server, all partitions at once, beside nats.go's ordered consumer that only
// counts. The server's and the client's allocations are in the figures; the
// reader has none of its own, which a test holds.
func BenchmarkFixRead(b *testing.B) {
	for name, shared := range map[string]bool{"each": false, "shared": true} {
		b.Run(name, func(b *testing.B) { benchRead(b, filled(b, shared)) })
	}
	b.Run("ordered-consumer", func(b *testing.B) { benchOrderedConsumer(b, filled(b, false)) })
}

func benchRead(b *testing.B, d *durable) {
	out := make(chan *router.Batch)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	b.ResetTimer()
	for p := range benchPartitions {
		go func() { done <- d.source.Read(ctx, p, 0, out) }()
	}
	for n := 0; n < b.N; {
		batch := <-out
		n += len(batch.Messages)
		batch.Release()
	}
	b.StopTimer()
	cancel()
	for range benchPartitions {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func benchOrderedConsumer(b *testing.B, d *durable) {
	stream, err := d.js.Stream(b.Context(), ingest.StreamName(namespace))
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(b.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	n, done := 0, make(chan struct{})
	b.ResetTimer()
	reading, err := consumer.Consume(func(jetstream.Msg) {
		if n++; n == b.N {
			close(done)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	<-done
	b.StopTimer()
	reading.Stop()
}

// filled is a stream with b.N locations of many devices.
func filled(b *testing.B, shared bool) *durable {
	b.Helper()
	b.ReportAllocs()
	d := newDurable(b, benchPartitions, shared)
	for i := range b.N {
		_, err := d.js.PublishAsync(fmt.Sprintf("location.dev-%d", i%6000), []byte(location(i)), jetstream.WithStallWait(patience))
		if err != nil {
			b.Fatal(err)
		}
	}
	<-d.js.PublishAsyncComplete()
	return d
}

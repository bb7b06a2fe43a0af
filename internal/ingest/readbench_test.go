package ingest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/router"
)

// BenchmarkFixRead reads one stored location per iteration out of a real
// server, in the same run beside nats.go's ordered consumer that only counts.
// A part of the allocations is the server's and the client's: four per message
// come with nats.go.
func BenchmarkFixRead(b *testing.B) {
	b.Run("tripline", func(b *testing.B) {
		d := filled(b)
		out := make(chan *router.Batch)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- d.source.Read(ctx, 0, 0, out) }()
		b.ResetTimer()
		for n := 0; n < b.N; {
			batch := <-out
			n += len(batch.Messages)
			batch.Release()
		}
		b.StopTimer()
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
	b.Run("ordered-consumer", func(b *testing.B) {
		d := filled(b)
		stream, err := d.js.Stream(b.Context(), ingest.StreamName(namespace))
		if err != nil {
			b.Fatal(err)
		}
		consumer, err := stream.OrderedConsumer(b.Context(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{"loc.0.>"}})
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
	})
}

// filled is a stream with b.N locations of many devices.
func filled(b *testing.B) *durable {
	b.Helper()
	b.ReportAllocs()
	d := newDurable(b, 1)
	for i := range b.N {
		_, err := d.js.PublishAsync(fmt.Sprintf("location.dev-%d", i%1000), []byte(location(i)), jetstream.WithStallWait(patience))
		if err != nil {
			b.Fatal(err)
		}
	}
	<-d.js.PublishAsyncComplete()
	return d
}

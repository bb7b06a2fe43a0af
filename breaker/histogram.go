package breaker

import (
	"math/bits"
	"time"
)

const (
	unitBits = 15  // the smallest bucket is 2^15 ns, 33 us, wide
	subBits  = 3   // 8 buckets to each doubling
	buckets  = 184 // up to 9 minutes; longer ones share the last
)

// histogram counts latencies in log-linear buckets. It decides nothing.
type histogram [buckets]uint32

// bucket returns the bucket of a latency.
func bucket(d time.Duration) int {
	x := uint64(max(d, 0)) >> unitBits
	if x < 1<<subBits {
		return int(x)
	}
	exp := bits.Len64(x) - subBits - 1
	return min(exp<<subBits+int(x>>exp), buckets-1)
}

// middle returns the latency that stands for a bucket.
func middle(i int) time.Duration {
	if i < 1<<subBits {
		return time.Duration(2*i+1) << (unitBits - 1)
	}
	exp := i>>subBits - 1
	low := uint64(i&(1<<subBits-1)|1<<subBits) << exp
	return time.Duration((2*low + 1<<exp) << (unitBits - 1))
}

// quantile returns the percentile by nearest rank, to within 7 %, and 0 if h
// is empty.
func (h *histogram) quantile(percent int) time.Duration {
	total := 0
	for _, n := range h {
		total += int(n)
	}
	rank := (total*percent + 99) / 100
	for i, n := range h {
		if rank -= int(n); rank <= 0 && total > 0 {
			return middle(i)
		}
	}
	return 0
}

// least returns the lowest latency, to within 7 %, and 0 if h is empty.
func (h *histogram) least() time.Duration {
	for i, n := range h {
		if n > 0 {
			return middle(i)
		}
	}
	return 0
}

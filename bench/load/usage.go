package main

import (
	"bufio"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what a process has used so far.
type usage struct {
	At     int64  `json:"at"`     // unix ns
	Count  uint64 `json:"count"`  // of what it counts
	Allocs uint64 `json:"allocs"` // heap objects, since it began
	CPU    int64  `json:"cpu"`    // ns, user and system
	Heap   uint64 `json:"heap"`   // bytes of live and not yet swept objects
	RSS    uint64 `json:"rss"`    // bytes resident
	Peak   uint64 `json:"peak"`   // bytes resident at most
}

func readUsage(count uint64) usage {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	u := usage{
		At: time.Now().UnixNano(), Count: count,
		Allocs: samples[0].Value.Uint64() + samples[1].Value.Uint64(),
		Heap:   samples[2].Value.Uint64(),
	}
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.CPU = r.Utime.Nano() + r.Stime.Nano()
	}
	u.RSS, u.Peak = resident()
	return u
}

// resident reads how much memory the process has, where the system tells.
func resident() (now, peak uint64) {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "VmRSS":
			now = kb << 10
		case "VmHWM":
			peak = kb << 10
		}
	}
	return now, peak
}

// growth is what happened between two readings.
type growth struct {
	Seconds float64
	Count   float64
	Allocs  float64
	CPU     float64 // ns
}

func since(before, after usage) growth {
	return growth{
		Seconds: float64(after.At-before.At) / 1e9,
		Count:   float64(after.Count - before.Count),
		Allocs:  float64(after.Allocs - before.Allocs),
		CPU:     float64(after.CPU - before.CPU),
	}
}

func (g growth) rate() float64 { return g.Count / g.Seconds }

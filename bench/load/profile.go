package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
)

// profiler profiles the CPU time of its process.
type profiler struct{ profile bytes.Buffer }

// start profiles until stop.
func (p *profiler) start(context.Context, struct{}) (any, error) {
	p.profile.Reset()
	if err := pprof.StartCPUProfile(&p.profile); err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	return nil, nil
}

// stop returns the nanoseconds by stage. With a path, the profile is written
// there as well.
func (p *profiler) stop(_ context.Context, path string) (any, error) {
	pprof.StopCPUProfile()
	if path != "" {
		if err := os.WriteFile(path, p.profile.Bytes(), 0o600); err != nil {
			return nil, fmt.Errorf("writing the profile: %w", err)
		}
	}
	return stageCPU(p.profile.Bytes())
}

// stages are what the router's CPU time goes to, by the package of the
// innermost frame that is in the list: the time of a system call or of an
// allocation belongs to whoever wanted it.
var stages = []struct{ name, pkg string }{
	{"nats client", "github.com/nats-io/nats%2ego"}, // as the linker spells nats.go
	{"decode, partition", "github.com/tripline/tripline/internal/ingest"},
	{"match, track", "github.com/tripline/tripline/geofence"},
	{"match, track", "github.com/tidwall/rtree"},
	{"sinks", "github.com/tripline/tripline/router/"},
	{"sinks", "net/http"},
	{"route, ledger", "github.com/tripline/tripline/router"},
	{"deliver", "github.com/tripline/tripline/fallback"},
	{"deliver", "github.com/tripline/tripline/breaker"},
	{"progress", "github.com/tripline/tripline/internal/state"},
	{"progress", "github.com/synadia-io/orbit.go"},
	{"count, show", "github.com/tripline/tripline/internal"},
	{"count, show", "github.com/prometheus"},
}

// Time that belongs to nobody above.
const (
	stageGC    = "collect garbage"
	stageSched = "schedule, wait"
	stageOther = "other"
)

func stageOf(frames []string) string {
	for _, f := range frames {
		if strings.HasPrefix(f, "runtime.gcBgMarkWorker") || strings.HasPrefix(f, "runtime.bgsweep") || strings.HasPrefix(f, "runtime.bgscavenge") {
			return stageGC
		}
		for _, s := range stages {
			if strings.HasPrefix(f, s.pkg) {
				return s.name
			}
		}
	}
	for _, f := range frames {
		if strings.HasPrefix(f, "runtime.mcall") || strings.HasPrefix(f, "runtime.schedule") || strings.HasPrefix(f, "runtime.mstart") || strings.HasPrefix(f, "runtime.sysmon") {
			return stageSched
		}
	}
	return stageOther
}

// stageCPU sums the nanoseconds of a CPU profile by stage.
func stageCPU(data []byte) (map[string]int64, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the profile: %w", err)
	}
	raw, err := io.ReadAll(zr)
	if err != nil {
		return nil, fmt.Errorf("reading the profile: %w", err)
	}
	p, err := parseProfile(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the profile: %w", err)
	}
	sums := map[string]int64{}
	var frames []string
	for _, s := range p.samples {
		frames = frames[:0]
		for _, location := range s.locations {
			for _, function := range p.locations[location] {
				if name := p.functions[function]; name < uint64(len(p.strings)) {
					frames = append(frames, p.strings[name])
				}
			}
		}
		sums[stageOf(frames)] += s.value
	}
	return sums, nil
}

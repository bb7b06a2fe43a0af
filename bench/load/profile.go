package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

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

// profile is what we need of pprof's profile.proto.
type profile struct {
	samples   []sample
	locations map[uint64][]uint64 // functions of a location, the innermost first
	functions map[uint64]uint64   // a function's name, as a place in strings
	strings   []string
}

type sample struct {
	locations []uint64 // the innermost first
	value     int64    // the last of its values: nanoseconds
}

// Field numbers of profile.proto.
const (
	profileSample, profileLocation, profileFunction, profileString = 2, 4, 5, 6
	sampleLocation, sampleValue                                    = 1, 2
	locationID, locationLine                                       = 1, 4
	lineFunction                                                   = 1
	functionID, functionName                                       = 1, 2
)

func parseProfile(raw []byte) (*profile, error) {
	p := &profile{locations: map[uint64][]uint64{}, functions: map[uint64]uint64{}}
	err := fields(raw, func(field int, _ uint64, b []byte) error {
		switch field {
		case profileSample:
			var s sample
			err := fields(b, func(field int, v uint64, packed []byte) error {
				switch field {
				case sampleLocation:
					return numbers(v, packed, func(n uint64) { s.locations = append(s.locations, n) })
				case sampleValue:
					return numbers(v, packed, func(n uint64) { s.value = int64(n) })
				}
				return nil
			})
			p.samples = append(p.samples, s)
			return err
		case profileLocation:
			return p.location(b)
		case profileFunction:
			var id, name uint64
			err := fields(b, func(field int, v uint64, _ []byte) error {
				switch field {
				case functionID:
					id = v
				case functionName:
					name = v
				}
				return nil
			})
			p.functions[id] = name
			return err
		case profileString:
			p.strings = append(p.strings, string(b))
		}
		return nil
	})
	return p, err
}

func (p *profile) location(b []byte) error {
	var id uint64
	var functions []uint64
	err := fields(b, func(field int, v uint64, line []byte) error {
		switch field {
		case locationID:
			id = v
		case locationLine:
			return fields(line, func(field int, v uint64, _ []byte) error {
				if field == lineFunction {
					functions = append(functions, v)
				}
				return nil
			})
		}
		return nil
	})
	p.locations[id] = functions
	return err
}

var errCutShort = errors.New("it is cut short")

// fields calls do for each field of a protocol buffer message: with its number
// for a varint, with its bytes for what has a length.
func fields(b []byte, do func(field int, v uint64, b []byte) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return errCutShort
		}
		b = b[n:]
		v, n := uint64(0), 0
		var part []byte
		switch key & 7 {
		case 0, 2:
			if v, n = binary.Uvarint(b); n <= 0 {
				return errCutShort
			}
			b = b[n:]
			if key&7 == 2 {
				if v > uint64(len(b)) {
					return errCutShort
				}
				part, b = b[:v], b[v:]
			}
		default:
			return fmt.Errorf("it has a field of type %d", key&7)
		}
		if err := do(int(key>>3), v, part); err != nil {
			return err
		}
	}
	return nil
}

// numbers calls do for one number, or for each of a packed field.
func numbers(v uint64, packed []byte, do func(uint64)) error {
	if packed == nil {
		do(v)
		return nil
	}
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		if size <= 0 {
			return errCutShort
		}
		do(n)
		packed = packed[size:]
	}
	return nil
}

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

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

package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. In the file it is written as 512MiB, 10GB or a
// plain number of bytes; empty means that Tripline chooses.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// String is the size in the largest unit that leaves a readable number.
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if v := float64(s) / float64(u.bytes); math.Abs(v) < 1024 || u.suffix == "TiB" {
			if math.Abs(v) < 1 {
				return fmt.Sprintf("%d B", int64(s))
			}
			return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + u.suffix
		}
	}
	return ""
}

var errSize = errors.New("must be a size such as 512MiB, 10GB or a number of bytes")

// ParseSize reads a size as it is written in the file.
func ParseSize(s string) (Size, error) {
	number, scale := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(number, u.suffix); ok {
			number, scale = strings.TrimSpace(head), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || v*float64(scale) >= math.MaxInt64 {
		return 0, errSize
	}
	return Size(v * float64(scale)), nil
}

var errDuration = errors.New("must be a duration with its unit, such as 500ms, 2s, 5m, 24h or 7d")

// ParseDuration reads a duration as Go writes it, with d for days besides.
func ParseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(math.Abs(n) < 36500) {
			return 0, errDuration
		}
		var more time.Duration
		if rest != "" {
			if more, err = time.ParseDuration(rest); err != nil {
				return 0, errDuration
			}
		}
		return time.Duration(n*24*float64(time.Hour)) + more, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// shortDuration is a duration without its zero parts: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

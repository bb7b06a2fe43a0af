package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// growthRow is what a size costs.
type growthRow struct {
	Fences    int     `json:"fences"`
	Devices   int     `json:"devices"`
	Consumers int     `json:"consumers"`
	FixesPerS float64 `json:"fixes_per_s"`
	CPUPerFix float64 `json:"cpu_us_per_fix"`
	RSS       float64 `json:"rss_mb"`
	Start     float64 `json:"start_s"`   // with an empty store
	Restart   float64 `json:"restart_s"` // with all devices known
}

// sizes are the rows: those asked for, or one of the three grows while the
// others stay.
func sizes(o options) (rows []growthRow, err error) {
	add := func(fences, devices, consumers int) {
		rows = append(rows, growthRow{Fences: fences, Devices: devices, Consumers: consumers})
	}
	switch {
	case o.Sizes != "":
		for size := range strings.SplitSeq(o.Sizes, ",") {
			row, err := parseSize(size)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	case o.Short:
		add(100, 1000, 1)
		add(1000, 2000, 10)
	default:
		for n := 1000; n <= 1_000_000; n *= 10 {
			add(n, 10_000, 1)
		}
		for n := 1000; n <= 1_000_000; n *= 10 {
			add(10_000, n, 1)
		}
		for n := 1; n <= 1000; n *= 10 {
			add(10_000, 10_000, n)
		}
		add(100_000, 1_000_000, 1)
	}
	return rows, nil
}

// parseSize reads FENCESxDEVICESxCONSUMERS.
func parseSize(size string) (row growthRow, err error) {
	parts := strings.Split(size, "x")
	numbers := []*int{&row.Fences, &row.Devices, &row.Consumers}
	ok := len(parts) == len(numbers)
	for i := 0; ok && i < len(numbers); i++ {
		*numbers[i], err = strconv.Atoi(parts[i])
		ok = err == nil
	}
	if !ok || row.Fences < 1 || row.Devices < 1000 || !isPowerOfTen(row.Consumers) {
		return row, fmt.Errorf("size %q; write FENCESxDEVICESxCONSUMERS, as in 100000x1000000x1: 1 fence or more, 1000 devices or more, and a power of ten of consumers", size)
	}
	return row, nil
}

func isPowerOfTen(n int) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// sharers are n NATS consumers between which the devices, and so the triggers,
// are divided by the last digits of their ids. n is a power of ten.
func sharers(n int) []consumer {
	digits := len(strconv.Itoa(n)) - 1
	var all []consumer
	for i := range n {
		c := consumer{name: fmt.Sprintf("c%d", i), kind: kindNATS, devices: "*"}
		if digits > 0 {
			c.devices = fmt.Sprintf("*%0*d", digits, i)
		}
		all = append(all, c)
	}
	return all
}

func runGrowth(ctx context.Context, o options, out, log io.Writer) error {
	durable := o.Mode == "durable"
	fmt.Fprintf(out, "%s mode, NATS sinks; each trigger goes to one consumer\n\n", map[bool]string{true: "durable", false: "core"}[durable])
	fmt.Fprintln(out, "|  fences | devices | consumers | fixes/s | CPU us/fix | resident MB | start s | restart s |")
	fmt.Fprintln(out, "|--------:|--------:|----------:|--------:|-----------:|------------:|--------:|----------:|")
	rows, err := sizes(o)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		if err := measureSize(ctx, o, durable, row, log); err != nil {
			return fmt.Errorf("%d fences, %d devices, %d consumers: %w", row.Fences, row.Devices, row.Consumers, err)
		}
		fmt.Fprintf(out, "| %7d | %7d | %9d | %7.0f | %10.2f | %11.0f | %7.2f | %9.2f |\n",
			row.Fences, row.Devices, row.Consumers, row.FixesPerS, row.CPUPerFix, row.RSS, row.Start, row.Restart)
	}
	return writeJSON(o.JSON, rows)
}

func measureSize(ctx context.Context, o options, durable bool, row *growthRow, log io.Writer) error {
	o.Fences, o.Devices = row.Fences, row.Devices
	r, err := newRig(ctx, setup{city: o.city(), durable: durable, consumers: sharers(row.Consumers), log: log})
	defer r.close()
	if err != nil {
		return err
	}
	row.Start = r.startSeconds
	if err := r.warm(ctx); err != nil {
		return err
	}
	g, err := r.saturateRouter(ctx, o.Time, false)
	if err != nil {
		return err
	}
	row.FixesPerS, row.CPUPerFix = g.rate(), g.CPU/g.Count/1e3
	if err := r.app.call(ctx, "free", nil, nil); err != nil {
		return err
	}
	u, err := r.app.usage(ctx)
	if err != nil {
		return err
	}
	row.RSS = float64(u.RSS) / mib
	if err := r.stopRouter(ctx); err != nil {
		return err
	}
	if err := r.startRouter(ctx); err != nil {
		return err
	}
	row.Restart = r.startSeconds
	return nil
}

package main

import (
	"context"
	"io"
)

func runIsolation(ctx context.Context, o options, out, log io.Writer) error { return nil }
func runOutage(ctx context.Context, o options, out, log io.Writer) error    { return nil }
func runGrowth(ctx context.Context, o options, out, log io.Writer) error    { return nil }

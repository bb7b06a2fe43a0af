package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
)

// asRouter, if set, turns the test binary into the router, so that no other
// has to be built: it is run as `tripline run -c FILE`.
const asRouter = "TRIPLINE_CHAOS_ROUTER"

func TestMain(m *testing.M) {
	if os.Getenv(asRouter) != "" {
		if err := serveRouter(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func serveRouter(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	return app.Run(ctx, cfg, app.Options{
		Version: "test",
		Log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Reload:  func() (*config.Config, error) { return config.Load(path) },
	})
}

// TestShortStorm is the short form of the bench: the real service on a real
// disk, killed twice.
func TestShortStorm(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv(asRouter, "1")
	opts := options{Seed: 43852, Router: os.Args[0], Out: t.Output()}
	opts.shorten()
	v, err := execute(t.Context(), opts)
	if err != nil {
		t.Fatalf("seed %d: %v", opts.Seed, err)
	}
	v.print(t.Output())
	if !v.ok() {
		t.Errorf("go run ./bench/chaos --short --seed %d: lost %d, reordered %d, unexpected %d, resequenced %d, problems %q",
			opts.Seed, v.Lost, v.Reordered, v.Unexpected, v.Resequenced, v.Problems)
	}
	if v.Kills != 2 || v.Expected < 500 {
		t.Errorf("%d kills and %d deliveries due: that proves little", v.Kills, v.Expected)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind in the temporary folder: %v, %v", left, err)
	}
}

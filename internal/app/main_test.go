package app_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/natstest"
)

// childConfig, if set, turns the test binary into the service itself, so that
// a test can kill it.
const childConfig = "TRIPLINE_TEST_CONFIG"

// childHurry, if set, has it hold short leases.
const childHurry = "TRIPLINE_TEST_HURRY"

func TestMain(m *testing.M) {
	if natstest.BeMember() {
		return
	}
	if path := os.Getenv(childConfig); path != "" {
		if err := serve(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most of these tests wait most of the time: for servers, retries, timeouts.
	// With the race detector, which runs with -short, they compute.
	flag.Parse()
	if !testing.Short() {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

func serve(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.Load(path)
	if err != nil {
		return err
	}
	opts := app.Options{
		Version: "test",
		Log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Started: func(s app.Started) { fmt.Printf("%s %s\n", s.NATS, s.Admin) },
	}
	if os.Getenv(childHurry) != "" {
		opts.Leases, opts.Home = hurried, nowhere
	}
	return app.Run(ctx, cfg, opts)
}

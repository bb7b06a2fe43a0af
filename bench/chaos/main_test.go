package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	file := filepath.Join(t.TempDir(), "result.json")
	args := []string{"--short", "--seed", "43852", "--router", os.Args[0], "--json", file}
	if code := command(t.Context(), args, t.Output()); code != 0 {
		t.Errorf("chaos %s: exit code %d", strings.Join(args, " "), code)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v verdict
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if v.Kills != 2 || v.Expected < 500 {
		t.Errorf("%d kills and %d deliveries due: that proves little", v.Kills, v.Expected)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind in the temporary folder: %v, %v", left, err)
	}
}

// TestTheReaderOfTheOutputGoes: the run ends, and tidies up, once it can't
// write any more.
func TestTheReaderOfTheOutputGoes(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv(asRouter, "1")
	out, lines := net.Pipe()
	out.Close()
	begun := time.Now()
	if code := command(t.Context(), []string{"--kills", "1000", "--router", os.Args[0]}, lines); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind in the temporary folder: %v, %v", left, err)
	}
}

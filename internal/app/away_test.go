package app_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tripline/tripline/internal/app"
	"github.com/tripline/tripline/internal/natstest"
)

// While NATS is away the log says that, and what to do, and not how the client
// puts it: that a buffer is full which is empty on purpose.
func TestALogSaysThatNATSIsAway(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	hook := newHook(t)
	path := squareService(t, hook.URL, true)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "ingest:")
	if err := os.WriteFile(path, []byte("nats: {url: \""+srv.URL+"\", max_store: 1GiB}\ningest:"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := &logLines{}
	start(t, path, func(o *app.Options) { o.Log = slog.New(slog.NewTextHandler(lines, nil)) })
	srv.Stop()
	eventually(t, "a line that says it", func() bool {
		for line := range strings.Lines(lines.String()) {
			if strings.Contains(line, "the leases' bucket does not answer well") && strings.Contains(line, "NATS is not connected at the moment: see that its server runs") {
				return true
			}
		}
		return false
	})
	srv.Restart(t) // so that the stop finds it
	if strings.Contains(lines.String(), "outbound buffer") {
		t.Errorf("the client's words are in\n%s", lines)
	}
}

package main

import (
	"bytes"
	stdlog "log"
	"log/slog"
	"strings"
	"testing"
)

// What a library prints by itself has the log's format, and a level.
func TestStandardLogGoesThroughOurs(t *testing.T) {
	var ours, before bytes.Buffer
	old := stdlog.Writer()
	stdlog.SetOutput(&before)
	defer stdlog.SetOutput(old)
	restore := standardLog(slog.NewJSONHandler(&ours, nil))
	stdlog.Printf("Unsolicited response received on idle HTTP channel starting with %q", "HTTP/1.1 408")
	restore()
	stdlog.Print("afterwards")
	if !strings.Contains(ours.String(), `"level":"WARN","msg":"Unsolicited response received on idle HTTP channel`) || strings.Count(ours.String(), "\n") != 1 {
		t.Errorf("ours: %s", &ours)
	}
	if !strings.HasSuffix(before.String(), "afterwards\n") || strings.Count(before.String(), "\n") != 1 {
		t.Errorf("the one before: %s", &before)
	}
}

package main

import (
	"bytes"
	stdlog "log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong fence file is told before anything is started, with the exit code
// of a wrong configuration: it is no use to start again.
func TestRunWithAWrongFenceFile(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"city.geojson": `{"type":"FeatureCollection"`,
		"t.yaml":       "nats: {listen: \"127.0.0.1:0\", store_dir: " + dir + "/store}\nadmin: {listen: \"127.0.0.1:0\"}\nfences: [{file: city.geojson}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := tripline(t, "", "run", "-c", filepath.Join(dir, "t.yaml"))
	if r.code != exitUsage || !strings.Contains(r.err, "tripline: "+dir+"/city.geojson:1:") {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Stat(dir + "/store"); !os.IsNotExist(err) {
		t.Errorf("the store was opened: %v", err)
	}
}

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

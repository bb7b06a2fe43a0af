package app_test

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// realData returns the folder with the recorded traces, or skips the test.
func realData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRIPLINE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "geolife.csv.gz")); err != nil {
		t.Skipf("no recorded traces: %v; set TRIPLINE_DATA to their folder", err)
	}
	return dir
}

// fixRow is a recorded fix as it is published.
type fixRow struct{ device, ts, lat, lon string }

func (r fixRow) message() *nats.Msg {
	return &nats.Msg{
		Subject: "location." + r.device,
		Data:    fmt.Appendf(nil, `{"lat":%s,"lon":%s,"ts":%q}`, r.lat, r.lon, r.ts),
	}
}

func readRows(t *testing.T, dir string) []fixRow {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "geolife.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]fixRow, 0, len(records)-1)
	for _, r := range records[1:] {
		rows = append(rows, fixRow{r[0], r[1], r[2], r[3]})
	}
	if testing.Short() {
		// The first 200 fixes of each journey's day are enough to see it work.
		rows = slices.DeleteFunc(rows, func(r fixRow) bool { return r.device != "geolife-010" })
		rows = rows[:20_000]
	}
	return rows
}

// expectedTransitions are what an independent program computed, in the form
// that list gives of what was received.
func expectedTransitions(t *testing.T, dir string, rows []fixRow) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "geolife-beijing-transitions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // by device: the newest ts that is published
	for _, r := range rows {
		last[r.device] = max(last[r.device], r.ts)
	}
	var want []string
	for _, r := range records[1:] {
		if r[1] <= last[r[0]] {
			want = append(want, fmt.Sprint(r[0], " ", r[1], " ", r[2], " ", r[3]))
		}
	}
	return want
}

// list writes triggers like the oracle does, by device, in the order of their
// arrival; a repeat of an id is left out.
func list(got []trigger) []string {
	seen := map[string]bool{}
	var out []string
	for _, g := range got {
		if !seen[g.ID] {
			seen[g.ID] = true
			out = append(out, fmt.Sprint(g.Data.Device, " ", g.Data.At.UTC().Format(time.RFC3339), " ", g.Data.Fence.ID, " ", g.Data.Transition))
		}
	}
	// Stable: the order within a device stays as it was.
	slices.SortStableFunc(out, func(a, b string) int {
		return compareDevice(a, b)
	})
	return out
}

func compareDevice(a, b string) int {
	const device = len("geolife-010")
	switch {
	case a[:device] < b[:device]:
		return -1
	case a[:device] > b[:device]:
		return 1
	}
	return 0
}

func sameTransitions(t *testing.T, got []trigger, want []string) {
	t.Helper()
	want = slices.Clone(want)
	slices.SortStableFunc(want, compareDevice)
	have := list(got)
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			t.Fatalf("transition %d is %q, want %q", i, have[i], want[i])
		}
	}
	if len(have) != len(want) {
		t.Fatalf("%d transitions, want %d", len(have), len(want))
	}
}

// publish stores the rows with acks, again and again where the server is away.
func publish(js jetstream.JetStream, rows []fixRow) error {
	const window = 2000
	for start := 0; start < len(rows); start += window {
		chunk := rows[start:min(start+window, len(rows))]
		deadline := time.Now().Add(patience)
		for !publishChunk(js, chunk) {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d fixes could not be published", len(chunk))
			}
		}
	}
	return nil
}

func mustPublish(t *testing.T, js jetstream.JetStream, rows []fixRow) {
	t.Helper()
	if err := publish(js, rows); err != nil {
		t.Fatal(err)
	}
}

func publishChunk(js jetstream.JetStream, rows []fixRow) bool {
	acks := make([]jetstream.PubAckFuture, 0, len(rows))
	for _, r := range rows {
		ack, err := js.PublishMsgAsync(r.message(), jetstream.WithMsgID(r.device+r.ts))
		if err != nil {
			return false
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case <-ack.Err():
			return false
		case <-time.After(5 * time.Second):
			return false
		}
	}
	return true
}

const geolifeConfig = `
nats: {store_dir: "%s/store", listen: "LISTEN", max_store: 4GiB}
fences: [{file: "FENCES"}]
admin: {listen: "127.0.0.1:0"}
log: {level: warn}
consumers:
  - name: hook
    webhook: {url: "HOOK", timeout: 5s}
    breaker: {p99: 2s}
`

func geolife(t *testing.T, dir, listen, hook string) string {
	t.Helper()
	return write(t, strings.NewReplacer(
		"LISTEN", listen, "FENCES", filepath.Join(dir, "beijing-districts.geojson"), "HOOK", hook,
	).Replace(geolifeConfig))
}

func TestRealTracesThroughTheService(t *testing.T) {
	t.Parallel()
	dir := realData(t)
	rows := readRows(t, dir)
	want := expectedTransitions(t, dir, rows)
	hook := newHook(t)
	service := start(t, geolife(t, dir, "127.0.0.1:0", hook.URL))
	js := connect(t, service.NATS)

	mustPublish(t, js, rows)
	got := hook.await(t, "last trigger", func(got []trigger) bool { return len(got) >= len(want) })
	sameTransitions(t, got, want)
	if len(got) != len(want) {
		t.Errorf("%d deliveries of %d triggers: each must come once", len(got), len(want))
	}

	// The same file again changes nothing. A device that is new shows when
	// everything before it has been judged.
	mustPublish(t, js, rows)
	marker := make([]fixRow, 0, 64)
	for i := range cap(marker) {
		marker = append(marker, fixRow{fmt.Sprintf("geolife-m%02d", i), "2010-01-01T00:00:00Z", "39.9087", "116.3975"})
	}
	mustPublish(t, js, marker)
	all := hook.await(t, "marker", func(got []trigger) bool { return len(got) >= len(want)+len(marker) })
	for _, g := range all[len(want):] {
		if !strings.HasPrefix(g.Subject, "geolife-m") {
			t.Errorf("publishing again made %s of %s", g.Type, g.Subject)
		}
	}
}

func TestRealTracesSurviveKill(t *testing.T) {
	t.Parallel()
	dir := realData(t)
	rows := readRows(t, dir)
	want := expectedTransitions(t, dir, rows)
	hook := newHook(t)
	listen := freeAddress(t)
	path := geolife(t, dir, listen, hook.URL)

	service := startChild(t, path)
	js := connect(t, service.nats)
	published := make(chan error, 1)
	go func() { published <- publish(js, rows) }()
	for _, share := range []int{4, 2} { // killed after a quarter and after a half
		hook.await(t, "share of the triggers", func(got []trigger) bool { return len(list(got)) >= len(want)/share })
		service.kill()
		service = startChild(t, path)
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	got := hook.await(t, "last trigger", func(got []trigger) bool { return len(list(got)) >= len(want) })
	sameTransitions(t, got, want)
	t.Logf("%d deliveries of %d triggers over two kills", len(got), len(want))
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

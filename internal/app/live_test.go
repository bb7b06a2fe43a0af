package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/internal/admin/live"
)

// watcher is an open stream of /api/v1/live.
type watcher struct {
	t     *testing.T
	lines *bufio.Scanner
}

func watch(t *testing.T, service running) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, service.Admin+"/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &watcher{t, lines}
}

// next is the data of the next event of that name which holds a text.
func (w *watcher) next(name, holds string) string {
	w.t.Helper()
	event := ""
	for w.lines.Scan() {
		line := w.lines.Text()
		if e, ok := strings.CutPrefix(line, "event: "); ok {
			event = e
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && event == name && strings.Contains(data, holds) {
			return data
		}
	}
	w.t.Fatalf("no event %s with %q: %v", name, holds, w.lines.Err())
	return ""
}

// histories is what a stream that is opened now says of the time before.
func histories(t *testing.T, service running) map[string]live.History {
	t.Helper()
	w := watch(t, service)
	w.next("hello", "")
	found := map[string]live.History{}
	event := ""
	for w.lines.Scan() {
		line := w.lines.Text()
		if e, ok := strings.CutPrefix(line, "event: "); ok {
			if event = e; event != "history" {
				return found // they come first, all at once
			}
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var h live.History
			if err := json.Unmarshal([]byte(data), &h); err != nil {
				t.Fatal(err)
			}
			found[h.Consumer] = h
		}
	}
	t.Fatalf("the stream ended: %v", w.lines.Err())
	return nil
}

func TestALivePageIsToldWhatHappenedBeforeItWasOpened(t *testing.T) {
	t.Parallel()
	path := squareService(t, newHook(t).URL, false)
	service := start(t, path)
	if status, text := do(t, "POST", service.Admin+"/api/v1/consumers/bus/open", ""); status != 200 {
		t.Fatalf("opening the bus's breaker: %d %s", status, text)
	}
	changes := histories(t, service)["bus"].Changes
	if len(changes) != 1 || changes[0].From != "closed" || changes[0].To != "open" || changes[0].Until == nil {
		t.Errorf("the past of the bus is %+v; want that it was opened", changes)
	}
	// A consumer that is removed is forgotten.
	edit(t, path, "  - name: bus\n    match: {transitions: [enter]}\n    nats: {subject: \"out.{transition}.{device}\"}\n", "")
	reload(t, service, 200, "")
	eventually(t, "the bus has no past any more", func() bool {
		past := histories(t, service)
		_, there := past["bus"]
		return !there && past["hook"].Consumer == "hook"
	})
}

func TestAForgottenDeviceLeavesTheLivePage(t *testing.T) {
	t.Parallel()
	service := start(t, squareService(t, newHook(t).URL, true))
	van := &traveller{t: t, nc: connect(t, service.NATS).Conn(), ts: time.Now()}
	open := watch(t, service)
	open.next("hello", `"gone_after_s":3600`)
	van.move("van-1")
	van.in = false
	van.move("van-2")
	open.next("devices", "van-1")
	if status, text := do(t, "DELETE", service.Admin+"/api/v1/devices/van-1", ""); status != 200 {
		t.Fatalf("forget: %d %s", status, text)
	}
	open.next("forgotten", `{"device":"van-1"}`)
	later := watch(t, service)
	if first := later.next("devices", ""); strings.Contains(first, "van-1") || !strings.Contains(first, "van-2") {
		t.Errorf("a page that is opened later is told of %s", first)
	}
}

// While a full queue holds the partitions up is when an operator needs the page.
func TestALivePageOpensWhileAFullQueueBlocks(t *testing.T) {
	t.Parallel()
	service, van, sick, _ := overfill(t, "block")
	awaitReady(t, service.Admin, "that the queue blocks", func(ready bool, text string) bool {
		return !ready && strings.Contains(text, "its fallback queue is full")
	})
	w := watch(t, service)
	w.next("hello", "")
	w.next("history", `"consumer":"sick"`)
	w.next("consumers", `"blocked":true`)
	sick.answers(nil)
	van.awaitAll(t, sick)
	w.next("devices", "") // as soon as the partition answers
}

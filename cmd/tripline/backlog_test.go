package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestFallbackCommands(t *testing.T) {
	l := startService(t)
	l.status.Store(500)
	for range 3 {
		l.visit("van-1")
		l.visit("van-2")
	}
	eventually(t, "a backlog of 12", func() bool { return l.hook().Backlog.Items == 12 })

	parked := mustJSON[[]entry](l, "fallback", "ls")
	if len(parked) != 12 || parked[0].Consumer != "hook" || parked[0].Device != "van-1" || parked[0].Transition != "enter" {
		t.Fatalf("parked: %+v", parked)
	}
	if list := mustJSON[[]entry](l, "fallback", "ls", "hook", "--limit", "5"); len(list) != 5 || list[4].Seq != parked[4].Seq {
		t.Errorf("limited: %+v", list)
	}
	r := tripline(t, "", "fallback", "ls", "hook", "--device", "van-2", "--limit", "2")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != exitOK || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], "CONSUMER  SEQ  DEVICE  FENCE") || !strings.Contains(lines[1], "van-2") || !strings.Contains(r.err, "there are more") {
		t.Errorf("table: %+v", r)
	}
	if strings.Contains(r.out, "\x1b") {
		t.Error("colours without a terminal")
	}
	seq := strconv.FormatUint(parked[1].Seq, 10)
	if shown := mustJSON[entry](l, "fallback", "show", "hook", seq); shown.ID != parked[1].ID || !strings.Contains(string(shown.Body), "specversion") {
		t.Errorf("shown: %+v", shown)
	}
	if list := mustJSON[[]entry](l, "fallback", "ls", "bus"); len(list) != 0 {
		t.Errorf("the bus has %+v", list)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"fallback", "ls", "nobody"}, exitFailure, `no consumer "nobody"`},
		{[]string{"fallback", "show", "hook", "99999"}, exitFailure, "there is no 99999"},
		{[]string{"fallback", "ls", "--older-than", "soon"}, exitUsage, "write a duration"},
		{[]string{"fallback", "purge", "hook"}, exitUsage, "add --yes"},
		{[]string{"fallback", "purge", "hook", seq, "--device", "van-1", "--yes"}, exitUsage, "exclude each other"},
		{[]string{"fallback", "purge", "hook", "--orphan", "--yes"}, exitFailure, "is configured"},
	} {
		if r := tripline(t, "", tt.args...); r.code != tt.code || !strings.Contains(r.err, tt.want) || r.out != "" {
			t.Errorf("%v: %+v; want %d with %q", tt.args, r, tt.code, tt.want)
		}
	}
	if r := answering(t, "n\n", "fallback", "purge", "hook"); r.code != exitFailure || !strings.Contains(r.err, "[y/N]") {
		t.Errorf("a purge that was answered with no: %+v", r)
	}
	if n := len(mustJSON[[]entry](l, "fallback", "ls")); n != 12 {
		t.Errorf("%d are parked after what removes nothing", n)
	}
	if r := answering(t, "y\n", "fallback", "purge", "hook", seq); r.code != exitOK || r.out != "removed 1 parked trigger\n" {
		t.Errorf("a purge of one: %+v", r)
	}
	if out := l.must("fallback", "purge", "hook", "--device", "van-2", "--yes"); out != "removed 6 parked triggers\n" {
		t.Errorf("a purge of a device: %q", out)
	}
	l.status.Store(204)
	eventually(t, "the rest", func() bool { return len(l.deliveries()) == 5 })
	want := []string{parked[0].ID}
	for _, p := range parked[2:] {
		if p.Device == "van-1" {
			want = append(want, p.ID)
		}
	}
	for i, d := range l.deliveries() {
		if d.ID != want[i] {
			t.Errorf("delivery %d is %s, want %s", i, d.ID, want[i])
		}
	}
	if out := l.must("fallback", "ls"); out != "nothing is parked\n" {
		t.Errorf("after the drain: %q", out)
	}
}

func TestDeadCommands(t *testing.T) {
	l := startService(t)
	l.status.Store(422)
	l.visit("van-1")
	l.visit("van-2")
	eventually(t, "four dead letters", func() bool { return len(mustJSON[[]entry](l, "dead", "ls", "hook")) == 4 })
	dead := mustJSON[[]entry](l, "dead", "ls")
	if out := l.must("dead", "ls", "hook", "--device", "van-1"); strings.Count(out, "rejected") != 2 || !strings.Contains(out, "answered 422") {
		t.Errorf("table:\n%s", out)
	}
	if shown := mustJSON[entry](l, "dead", "show", "hook", fmt.Sprint(dead[0].Seq)); shown.Attempts != 1 || shown.Reason != "rejected" || len(shown.Body) == 0 {
		t.Errorf("shown: %+v", shown)
	}
	l.status.Store(204)
	if out := l.must("dead", "redrive", "hook", "--device", "van-1"); out != "sent 2 dead letters again\n" {
		t.Errorf("redrive: %q", out)
	}
	eventually(t, "what was redriven", func() bool { return len(l.deliveries()) == 2 })
	for i, d := range l.deliveries() {
		want := ""
		for _, e := range dead {
			if e.Device == "van-1" && (want == "" || i == 1) {
				want = e.ID
			}
		}
		if d.ID != want || !d.redriven {
			t.Errorf("delivery %d: %+v, want %s, marked", i, d, want)
		}
	}
	if r := tripline(t, "", "dead", "purge", "hook"); r.code != exitUsage || !strings.Contains(r.err, "add --yes") {
		t.Errorf("a purge without --yes: %+v", r)
	}
	if out := l.must("dead", "purge", "hook", "--fence", "yard", "-y"); out != "removed 2 dead letters\n" {
		t.Errorf("purge: %q", out)
	}
	if out := l.must("dead", "ls"); out != "no dead letters\n" {
		t.Errorf("after the purge: %q", out)
	}
	if out := l.must("dead", "redrive", "hook"); out != "sent 0 dead letters again\n" {
		t.Errorf("redrive of nothing: %q", out)
	}
}

func TestDevicesCommands(t *testing.T) {
	l := startService(t)
	l.status.Store(500)
	l.visit("van-1")
	l.send("van-1", "52.5") // it stays inside
	eventually(t, "a backlog of 3", func() bool { return l.hook().Backlog.Items == 3 })
	out := l.must("devices", "show", "van-1")
	for _, want := range []string{"van-1 (partition ", "52.5, 4.5", "INSIDE", "The yard"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if d := mustJSON[device](l, "devices", "show", "van-1"); len(d.Inside) != 1 || d.Newest.Lat != 52.5 {
		t.Errorf("device: %+v", d)
	}
	if r := tripline(t, "", "devices", "forget", "van-1"); r.code != exitUsage {
		t.Errorf("forget without --yes: %+v", r)
	}
	if out := l.must("devices", "forget", "van-1", "--yes"); out != "forgot device van-1: 3 locations, 3 undelivered triggers, 0 dead letters\n" {
		t.Errorf("forget: %q", out)
	}
	if r := tripline(t, "", "devices", "show", "van-1"); r.code != exitFailure || !strings.Contains(r.err, `no device "van-1"`) {
		t.Errorf("show after forget: %+v", r)
	}
	if out := l.must("devices", "forget", "van-1", "--yes"); out != "nothing was stored of device van-1\n" {
		t.Errorf("forget again: %q", out)
	}
	eventually(t, "an empty backlog", func() bool { return l.hook().Backlog.Items == 0 })
}

func TestAReloadThatRemovesAConsumerLeavesAnOrphan(t *testing.T) {
	l := startService(t)
	if out := l.must("fallback", "orphans"); !strings.Contains(out, "no orphans") {
		t.Errorf("orphans: %q", out)
	}
	l.status.Store(500)
	l.visit("van-1")
	eventually(t, "a backlog of 2", func() bool { return l.hook().Backlog.Items == 2 })
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(text string) {
		if err := os.WriteFile(l.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(strings.Replace(string(text), "name: hook", "nmae: hook", 1))
	if r := tripline(t, "", "reload"); r.code != exitFailure || !strings.Contains(r.err, "nmae") || !strings.Contains(r.err, "stays in force") {
		t.Errorf("reload of a bad configuration: %+v", r)
	}
	before, rest, _ := strings.Cut(string(text), "  - name: hook")
	_, bus, _ := strings.Cut(rest, "  - name: bus")
	rewrite(before + "  - name: bus" + bus)
	if out := l.must("reload"); out != "the configuration was read again\n" {
		t.Errorf("reload: %q", out)
	}
	if list := mustJSON[struct{ Orphans []orphan }](l, "fallback", "orphans").Orphans; len(list) != 1 || list[0].Consumer != "hook" || list[0].Items != 2 {
		t.Errorf("orphans: %+v", list)
	}
	if out := l.must("fallback", "orphans"); !strings.Contains(out, "hook") {
		t.Errorf("orphans:\n%s", out)
	}
	if r := answering(t, "yes\n", "fallback", "purge", "hook", "--orphan"); r.code != exitOK || r.out != "removed 2 parked triggers and 0 dead letters\n" {
		t.Errorf("purge: %+v", r)
	}
	if out := l.must("fallback", "orphans"); !strings.Contains(out, "no orphans") {
		t.Errorf("orphans: %q", out)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/breaker"
)

// few is how many seeds the tests play; the command plays 200.
const few = 5

// TestTargets holds what the benchmark promises of tripline, with few seeds.
func TestTargets(t *testing.T) {
	ds := slices.DeleteFunc(own(disciplines()), func(d discipline) bool { return !d.ramp })
	res := study(scenarios(), ds, few, func(int, int) {})
	for _, missed := range missedTargets(res) {
		t.Error(missed)
	}
	var named []string
	for _, sc := range res.Scenarios {
		named = append(named, sc.Name)
		for _, p := range sc.Policies {
			if len(p.Windows) == 0 && sc.Name != "soft" {
				t.Errorf("%s, %s: it never opened", sc.Name, p.Name)
			}
		}
	}
	for _, want := range append(hard, "outage-3s", "outage-7s", "outage-20s", "outage-60s", "outage-300s", "quiet", "marginal", "soft") {
		if !slices.Contains(named, want) {
			t.Errorf("scenario %s is missing", want)
		}
	}
}

// TestTheOthers: what is compared with behaves as published, so that the
// model is not one in which everything recovers.
func TestTheOthers(t *testing.T) {
	sc := scenarioNamed(t, headline)
	figures := map[string]PolicyResult{}
	for _, p := range study([]*scenario{sc}, own(disciplines()), few, func(int, int) {}).Scenarios[0].Policies {
		figures[p.Name] = p
	}
	if p := figures["eager"]; p.Retrips < 5 || p.FallsOver < 4 || p.HealthyToClosed.P50 < 30 || p.HealthyToClosed.P50 > 60 {
		t.Errorf("eager: %+v; published are about 7 re-trips, 5 falls and 42 s", p)
	}
	if p := figures["backoff+cap"]; p.MaxProbes > 2 || p.RetripsP50 < 3 {
		t.Errorf("backoff+cap: %+v; without a ramp the released backlog should trip it again", p)
	}
	if p := figures["cooldown"]; p.MaxProbes != 1 || p.Windows[0] != 20 {
		t.Errorf("cooldown: %+v", p)
	}
	stands := scenarioNamed(t, "stands")
	if p := study([]*scenario{stands}, disciplines()[:1], few, func(int, int) {}).Scenarios[0].Policies[0]; p.FallsOver != 0 || p.HealthyToClosed.Max > 15 {
		t.Errorf("eager, with a consumer that does not fall over: %+v", p)
	}
}

func TestPeers(t *testing.T) {
	all := []*scenario{scenarioNamed(t, headline), scenarioNamed(t, "quiet")}
	res := studyPeers(t, all, 1)
	for _, sc := range res.Scenarios {
		for _, p := range sc.Policies {
			if p.Closes.Min < 1 || len(p.Windows) == 0 || p.MaxProbes < 1 {
				t.Errorf("%s, %s: it never opened, probed and closed: %+v", sc.Name, p.Name, p)
			}
		}
	}
}

// TestSameSeedSameRun: nothing depends on the machine.
func TestSameSeedSameRun(t *testing.T) {
	sc := scenarioNamed(t, "outage-7s-varied")
	for _, d := range own(disciplines()) {
		a, b := run(sc, d, 3, newArrivals(3), nil), run(sc, d, 3, newArrivals(3), nil)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs of one seed differ", d.name)
		}
	}
}

// TestSkippingChangesNothing: doing the arithmetic for the end of a drain
// gives what playing it gives.
func TestSkippingChangesNothing(t *testing.T) {
	d := disciplines()[3]
	skipped := run(scenarioNamed(t, headline), d, 1, newArrivals(1), nil)
	whole := scenarioNamed(t, headline)
	whole.whole, whole.horizon = true, 40*time.Second
	played := run(whole, d, 1, newArrivals(1), nil)
	if diff := (skipped.drainedAt - played.drainedAt).Abs(); diff > time.Second/2 {
		t.Errorf("drained at %v when played, %v when skipped", played.drainedAt, skipped.drainedAt)
	}
	if played.retrips != 0 || played.slow != 0 {
		t.Errorf("the rest of the run was not uneventful: %+v", played)
	}
}

func TestJSONKeys(t *testing.T) {
	sc := scenarioNamed(t, "outage-3s")
	res := study([]*scenario{sc}, own(disciplines()), 1, func(int, int) {})
	data, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"scenarios", "outage_s", "name", "policies", "retrips", "falls_over", "healthy_to_closed_s", "p50", "p95", "max",
		"max_probes_in_flight", "timeouts_after_healing", "slow_calls", "slow_seconds", "drain_s", "drain_bound_s",
		"parked", "closes", "min", "trips_per_min", "windows_s",
	} {
		if !strings.Contains(string(data), `"`+key+`":`) {
			t.Errorf("key %s is missing", key)
		}
	}
}

func TestPicture(t *testing.T) {
	d := xml.NewDecoder(bytes.NewReader(picture()))
	var words []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			words = append(words, string(text))
		}
	}
	all := strings.Join(words, " ")
	for _, want := range []string{"eager", "backoff+cap", "tripline+hint", "healed", "prefers-color-scheme:dark"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not mention %q", want)
		}
	}
}

func TestPrint(t *testing.T) {
	sc := scenarioNamed(t, headline)
	res := study([]*scenario{sc}, own(disciplines()), 1, func(int, int) {})
	var out strings.Builder
	writeTables(&out, res)
	for _, want := range []string{headline, "tripline+hint", "published: eager", "All targets met."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	find(&res.Scenarios[0], "tripline").Retrips = 1
	out.Reset()
	writeTables(&out, res)
	if !strings.Contains(out.String(), "outage-20s, tripline: re-trips 1, at most 0") {
		t.Errorf("a missed target is not said:\n%s", out.String())
	}
}

// TestTally: what counts as after healing is the start of the call.
func TestTally(t *testing.T) {
	ta := tally{heals: 10 * time.Second, closedAt: -1, drainedAt: -1}
	ta.call(9900*time.Millisecond, 10100*time.Millisecond, false)
	ta.moved(10100*time.Millisecond, breaker.Open, time.Second, 9900*time.Millisecond, 0)
	ta.moved(11*time.Second, breaker.HalfOpen, 0, 0, 0)
	ta.moved(12*time.Second, breaker.Closed, 0, 0, 40)
	ta.call(12*time.Second, 12100*time.Millisecond, true)
	ta.call(13*time.Second, 13200*time.Millisecond, false)
	ta.moved(13*time.Second, breaker.Open, time.Second, 12*time.Second, 0)
	ta.end = 20 * time.Second
	got := []int{ta.retrips, ta.reopens, ta.closes, ta.timeouts, ta.slow, ta.slowSeconds(), ta.parked}
	if want := []int{1, 0, 1, 1, 2, 2, 40}; !slices.Equal(got, want) {
		t.Errorf("tally %v, want %v", got, want)
	}
	if ta.closedAfter() != 10*time.Second {
		t.Errorf("open to the end, but closed after %v", ta.closedAfter())
	}
}

func scenarioNamed(t *testing.T, name string) *scenario {
	t.Helper()
	sc := named(name)
	if sc == nil {
		t.Fatalf("no scenario %s", name)
	}
	return sc
}

package router_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/router"
)

func compile(t *testing.T, entries ...router.MatchConfig) *router.Match {
	t.Helper()
	m, err := router.CompileMatch(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMatchGlobs(t *testing.T) {
	enter := func(device, fenceID string, tags ...string) *geofence.Transition {
		return &geofence.Transition{Kind: geofence.Enter, Device: device, Fence: fence(fenceID, tags...)}
	}
	silent := &geofence.Transition{Kind: geofence.Silent, Device: "van7"}
	for _, tt := range []struct {
		name string
		cfg  router.MatchConfig
		tr   *geofence.Transition
		want bool
	}{
		{"nothing set", router.MatchConfig{}, enter("a", "f"), true},
		{"star", router.MatchConfig{Fences: []string{"*"}, Tags: []string{"*"}, Devices: []string{"*"}}, enter("a", "f"), true},
		{"literal", router.MatchConfig{Fences: []string{"depot"}}, enter("a", "depot"), true},
		{"literal is whole", router.MatchConfig{Fences: []string{"depot"}}, enter("a", "depot-1"), false},
		{"case counts", router.MatchConfig{Fences: []string{"Depot"}}, enter("a", "depot"), false},
		{"prefix", router.MatchConfig{Fences: []string{"depot-*"}}, enter("a", "depot-"), true},
		{"suffix", router.MatchConfig{Fences: []string{"*-north"}}, enter("a", "depot-north"), true},
		{"middle", router.MatchConfig{Fences: []string{"a*b*c"}}, enter("a", "a-bb-bc"), true},
		{"middle in order", router.MatchConfig{Fences: []string{"a*b*c*d"}}, enter("a", "acbd"), false},
		{"ends don't overlap", router.MatchConfig{Fences: []string{"aba*ba"}}, enter("a", "aba"), false},
		{"two stars", router.MatchConfig{Fences: []string{"**"}}, enter("a", ""), true},
		{"star crosses dots", router.MatchConfig{Devices: []string{"fleet.*"}}, enter("fleet.north.van7", "f"), true},
		{"dot is itself", router.MatchConfig{Devices: []string{"fleet.*"}}, enter("fleetx", "f"), false},
		{"question mark is itself", router.MatchConfig{Devices: []string{"van?"}}, enter("van7", "f"), false},
		{"bracket is itself", router.MatchConfig{Devices: []string{"van[7]*"}}, enter("van[7]x", "f"), true},
		{"one of several", router.MatchConfig{Fences: []string{"x", "y*"}}, enter("a", "yard"), true},
		{"one tag of several", router.MatchConfig{Tags: []string{"co*"}}, enter("a", "f", "hot", "cold"), true},
		{"no tag", router.MatchConfig{Tags: []string{"cold"}}, enter("a", "f"), false},
		{"all must hold", router.MatchConfig{Fences: []string{"f"}, Devices: []string{"b"}}, enter("a", "f"), false},
		{"transition", router.MatchConfig{Transitions: []string{"exit", "enter"}}, enter("a", "f"), true},
		{"other transition", router.MatchConfig{Transitions: []string{"exit"}}, enter("a", "f"), false},
		{"silent has no fence", router.MatchConfig{Devices: []string{"van*"}}, silent, true},
		{"silent and all fences", router.MatchConfig{Fences: []string{"*"}, Tags: []string{"*"}}, silent, true},
		{"silent and some fences", router.MatchConfig{Fences: []string{"f*"}}, silent, false},
		{"silent and some tags", router.MatchConfig{Tags: []string{"t"}}, silent, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := compile(t, tt.cfg).Accept(tt.tr); got != tt.want {
				t.Errorf("%+v accepts %s in %v: %v, want %v", tt.cfg, tt.tr.Device, tt.tr.Fence, got, tt.want)
			}
		})
	}
}

func TestMatchFirstEntryGivesPriority(t *testing.T) {
	m := compile(t,
		router.MatchConfig{Transitions: []string{"enter"}, Priority: router.High},
		router.MatchConfig{Fences: []string{"depot-*"}, Priority: router.Low},
		router.MatchConfig{Devices: []string{"van*"}},
	)
	for _, tt := range []struct {
		kind   geofence.Kind
		fence  string
		device string
		want   router.Priority
		ok     bool
	}{
		{geofence.Enter, "depot-1", "van", router.High, true},
		{geofence.Exit, "depot-1", "van", router.Low, true},
		{geofence.Exit, "yard", "van", router.Normal, true},
		{geofence.Exit, "yard", "bus", router.Normal, false},
	} {
		got, ok := m.Accept(&geofence.Transition{Kind: tt.kind, Device: tt.device, Fence: fence(tt.fence)})
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s %s by %s: %v, %v; want %v, %v", tt.kind.String(), tt.fence, tt.device, got, ok, tt.want, tt.ok)
		}
	}
}

func TestMatchNilAndEmptyAcceptEverything(t *testing.T) {
	tr := &geofence.Transition{Kind: geofence.Silent, Device: "d"}
	for _, m := range []*router.Match{nil, compile(t)} {
		if priority, ok := m.Accept(tr); !ok || priority != router.Normal {
			t.Errorf("Accept = %v, %v", priority, ok)
		}
		if !m.Wants(geofence.Cross) || !m.FitsFence(fence("f")) {
			t.Error("does not want everything")
		}
	}
}

// G16: one match for all: what `where` sees is there for every kind.
func TestG16_WhereHoldsForEveryKind(t *testing.T) {
	m := compile(t, router.MatchConfig{Where: `fence.props.zone == "cold" && props.load > 3 && (fix.speed ?? 0) < 5`})
	for _, kind := range router.Kinds() {
		if kind == geofence.Silent {
			continue
		}
		tr := &geofence.Transition{
			Kind: kind, Device: "d",
			Fence: &geofence.Fence{ID: "f", Props: json.RawMessage(`{"zone":"cold"}`)},
			Fix:   geofence.Fix{Props: []byte(`{"load":4}`)},
		}
		if _, ok := m.Accept(tr); !ok {
			t.Errorf("%s: refused", kind.String())
		}
		tr.Fix.Has, tr.Fix.Speed = geofence.HasSpeed, 9
		if _, ok := m.Accept(tr); ok {
			t.Errorf("%s: accepted at speed 9", kind.String())
		}
	}
}

func TestWhereNames(t *testing.T) {
	tr := &geofence.Transition{
		Kind: geofence.Dwell, Device: "fleet.van7", At: time.Date(2026, 3, 1, 17, 30, 0, 0, time.UTC).UnixMilli(),
		Dwell: 90 * time.Second, Initial: true, Reason: "inactive",
		Fence: &geofence.Fence{ID: "f", Name: "F", Tags: []string{"a", "b"}, Props: json.RawMessage(`{"limit":30,"deep":{"x":[1,2]}}`)},
		Fix: geofence.Fix{
			Lat: 1.5, Lon: -2.5, TS: 1000, Has: geofence.HasAccuracy | geofence.HasAlt, Accuracy: 3, Alt: -7,
			Props: []byte(`{"battery":17}`),
		},
	}
	for where, want := range map[string]bool{
		`device startsWith "fleet."`:                             true,
		`transition == "dwell" && dwell_s == 90`:                 true,
		`at.Hour() == 17`:                                        true,
		`initial && reason == "inactive"`:                        true,
		`fence.id == "f" && fence.name == "F"`:                   true,
		`"b" in fence.tags`:                                      true,
		`fence.props.limit > 29 && fence.props.deep.x[1] == 2`:   true,
		`fix.lat > 1 && fix.lon < -2`:                            true,
		`fix.ts.Unix() == 1`:                                     true,
		`fix.accuracy < 5 && fix.alt < 0`:                        true,
		`fix.speed == nil && fix.heading == nil`:                 true,
		`fix.props.battery < 20 && props.battery == 17`:          true,
		`fix.props.absent == nil && fence.props?.no?.way == nil`: true,
		`fix.speed != nil && fix.speed < 5`:                      false,
		`device == "fleet"`:                                      false,
	} {
		_, got, err := compile(t, router.MatchConfig{Where: where}).Evaluate(tr)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", where, got, err, want)
		}
	}
}

func TestWhereErrorMeansNoMatch(t *testing.T) {
	m := compile(t,
		router.MatchConfig{Where: "fix.speed < 5", Priority: router.High},
		router.MatchConfig{Transitions: []string{"enter"}, Priority: router.Low},
	)
	tr := &geofence.Transition{Kind: geofence.Enter, Device: "d", Fence: fence("f")}
	priority, ok, err := m.Evaluate(tr)
	if !ok || priority != router.Low || err == nil {
		t.Errorf("Evaluate = %v, %v, %v; want the second entry, and the first one's error", priority, ok, err)
	}
	tr.Kind = geofence.Exit
	if _, ok, err := m.Evaluate(tr); ok || err == nil {
		t.Errorf("Evaluate = %v, %v; want no match and an error", ok, err)
	}
}

// R17: what can't be right is refused at load, with the place.
func TestR17_MatchIsCheckedAtLoad(t *testing.T) {
	for _, tt := range []struct {
		cfg       router.MatchConfig
		key       string
		line, col int
		says      string
	}{
		{router.MatchConfig{Transitions: []string{"entr"}}, "transitions", 0, 0, `"entr" is no transition; there are enter, exit`},
		{router.MatchConfig{Fences: []string{""}}, "fences", 0, 0, "empty pattern"},
		{router.MatchConfig{Devices: []string{"a", ""}}, "devices", 0, 0, "empty pattern"},
		{router.MatchConfig{Where: "fix.sped < 5"}, "where", 1, 5, "fix has no field sped"},
		{router.MatchConfig{Where: "true &&\n  spede > 1"}, "where", 2, 3, "unknown name spede"},
		{router.MatchConfig{Where: "fix.speed"}, "where", 1, 1, "the result must be true or false, not float64"},
		{router.MatchConfig{Where: "fix.speed < 'a'"}, "where", 1, 11, "mismatched types"},
		{router.MatchConfig{Where: "fix.speed <"}, "where", 1, 11, "unexpected token EOF"},
		{router.MatchConfig{Where: "fence.nam == ''"}, "where", 1, 7, "fence has no field nam"},
		{router.MatchConfig{Priority: 7}, "priority", 0, 0, "no priority"},
	} {
		_, err := router.CompileMatch(router.MatchConfig{}, tt.cfg)
		var e *router.MatchError
		if !errors.As(err, &e) {
			t.Errorf("%+v: error %v, want a *MatchError", tt.cfg, err)
			continue
		}
		if e.Entry != 1 || e.Key != tt.key || e.Line != tt.line || e.Col != tt.col || !strings.Contains(e.Error(), tt.says) {
			t.Errorf("%+v: %+v (%v), want key %s at %d:%d saying %q", tt.cfg, *e, e, tt.key, tt.line, tt.col, tt.says)
		}
	}
}

func TestMatchErrorsAreAllTold(t *testing.T) {
	_, err := router.CompileMatch(
		router.MatchConfig{Transitions: []string{"x", "y"}},
		router.MatchConfig{Where: "1 +"})
	if err == nil || strings.Count(err.Error(), "\n") < 2 {
		t.Errorf("error %q, want three problems", err)
	}
}

func TestPriorityNames(t *testing.T) {
	for _, p := range []router.Priority{router.High, router.Normal, router.Low} {
		if got, ok := router.ParsePriority(p.String()); !ok || got != p {
			t.Errorf("ParsePriority(%q) = %v, %v", p, got, ok)
		}
	}
	if _, ok := router.ParsePriority("urgent"); ok {
		t.Error(`ParsePriority("urgent") is ok`)
	}
	var zero router.Priority
	if got, ok := router.ParsePriority(""); !ok || got != zero {
		t.Errorf(`ParsePriority("") = %v, %v`, got, ok)
	}
}

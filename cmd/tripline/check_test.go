package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckOfTheExample(t *testing.T) {
	clean(t)
	r := tripline(t, "", "check", "-c", "../../examples/tripline.yaml")
	if r.code != exitOK || r.err != "" || !strings.HasPrefix(r.out, "../../examples/tripline.yaml: ok\n") ||
		!strings.Contains(r.out, "5 fences in files") || !strings.Contains(r.out, "dispatch: webhook http://127.0.0.1:9000/triggers") {
		t.Errorf("got %+v", r)
	}
}

// consumer is the beginning of a configuration with the example's fences.
func withCity(t *testing.T, consumer string) string {
	t.Helper()
	dir, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "t.yaml", "fences: [{file: "+filepath.Join(dir, "city.geojson")+"}]\nconsumers:\n"+consumer)
}

func TestR17_CheckWarnsOfGlobsThatMatchNothing(t *testing.T) {
	clean(t)
	path := withCity(t, `  - name: a
    match:
      - {fences: ["depot-*", "depto-*"], tags: [zone]}
      - {tags: [zoen, "*"]}
    nats: {subject: x.y}
`)
	r := tripline(t, "", "check", "-c", path)
	if r.code != exitOK || !strings.HasPrefix(r.out, path+": ok, with 2 warnings\n") {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{
		"warning: " + path + `:5:30: consumers[0].match[0].fences[1]: no fence has an id like "depto-*"`,
		"warning: " + path + `:6:17: consumers[0].match[1].tags[0]: no fence has a tag like "zoen"`,
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %s in\n%s", want, r.err)
		}
	}
	kv := file(t, "kv.yaml", "fences: [{kv: true}]\nconsumers: [{name: a, match: {fences: [x]}, nats: {subject: x.y}}]")
	if r := tripline(t, "", "check", "-c", kv); r.code != exitOK || r.err != "" {
		t.Errorf("what is in the bucket isn't known, so there is no warning; got %+v", r)
	}
}

func TestCheckWarnsOfFilesWithoutFences(t *testing.T) {
	clean(t)
	none := file(t, "none.geojson", `{"type":"FeatureCollection","features":[]}`)
	path := file(t, "t.yaml", "fences: [{file: "+none+"}]\nconsumers: [{name: a, nats: {subject: x.y}}]\n")
	r := tripline(t, "", "check", "-c", path)
	if r.code != exitOK || !strings.Contains(r.err, "warning: "+path+":1:9: fences: there is no fence in these files") {
		t.Errorf("got %+v", r)
	}
}

func TestR17_CheckRefusesTyposWithTheirPlace(t *testing.T) {
	clean(t)
	tests := []struct{ consumer, want string }{
		{"  - {name: a, nats: {subject: x.y}, macth: {}}", `:3:37: unknown key "macth" in consumers[0] (did you mean "match"?)`},
		{"  - {name: a, nats: {subject: x.y}, match: {transitions: [entr]}}", `:3:59: consumers[0].match.transitions[0] must be one of`},
		{"  - {name: a, nats: {subject: x.y}, match: {where: fix.sped <}}", `:3:52: consumers[0].match.where: line 1, character`},
		{"  - {name: a, nats: {subject: x.y}, match: {where: fix.speed}}", `:3:52: consumers[0].match.where:`},
	}
	for _, tt := range tests {
		path := withCity(t, tt.consumer)
		r := tripline(t, "", "check", "-c", path)
		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, path+tt.want) {
			t.Errorf("got %+v, want %s", r, tt.want)
		}
	}
}

func TestCheckTellsAllThatIsWrong(t *testing.T) {
	clean(t)
	dir := filepath.Dir(file(t, "bad.geojson", "{\"type\":\"FeatureCollection\",\n\"features\":[{\"type\":\"Feature\",\"id\":\"x\",\"properties\":{},\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,1],[1,0]]]}}]}"))
	path := file(t, "t.yaml", "fences: [{file: "+filepath.Join(dir, "bad.geojson")+"}]\nconsumers: [{name: a, match: {where: \"1 +\"}, nats: {subject: x.y}}]")
	r := tripline(t, "", "check", "-c", path)
	if r.code != exitUsage || !strings.Contains(r.err, path+":2:38: ") || !strings.Contains(r.err, "bad.geojson:2:") || !strings.Contains(r.err, `"x"`) {
		t.Errorf("got %+v", r)
	}
	if r := tripline(t, "", "check", "-c", path+".none"); r.code != exitUsage || !strings.Contains(r.err, "no such file") {
		t.Errorf("got %+v", r)
	}
}

func TestCheckAsJSON(t *testing.T) {
	clean(t)
	type found struct {
		OK                 bool
		Problems, Warnings []struct {
			File, Key, Message string
			Line, Column       int
		}
	}
	check := func(path string, code int) (f found) {
		t.Helper()
		r := tripline(t, "", "check", "-c", path, "--json")
		if err := json.Unmarshal([]byte(r.out), &f); err != nil || r.code != code || r.err != "" {
			t.Errorf("got %+v, %v", r, err)
		}
		return f
	}
	warned := withCity(t, "  - {name: a, match: {tags: [zoen]}, nats: {subject: x.y}}\n")
	if f := check(warned, exitOK); !f.OK || len(f.Problems) != 0 || len(f.Warnings) != 1 || f.Warnings[0].Key != "consumers[0].match.tags[0]" || f.Warnings[0].Line != 3 {
		t.Errorf("got %+v", f)
	}
	bad := file(t, "bad.geojson", "{}")
	wrong := file(t, "t.yaml", "fences: [{file: "+bad+"}]\nconsumers: [{name: a, match: {where: \"1 +\"}, nats: {subject: x.y}}]")
	if f := check(wrong, exitUsage); f.OK || len(f.Problems) != 2 || f.Problems[0].File != wrong || f.Problems[0].Line != 2 || f.Problems[0].Column != 38 ||
		!strings.HasPrefix(f.Problems[1].Message, bad+":1:") {
		t.Errorf("got %+v", f)
	}
	if f := check(wrong+".none", exitUsage); f.OK || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "no such file") {
		t.Errorf("got %+v", f)
	}
}

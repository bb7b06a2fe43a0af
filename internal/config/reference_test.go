package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tripline/tripline/internal/config"
)

const reference = "../../docs/reference.yaml"

// environment stands in for the process's.
func environment(vars map[string]string) config.Option {
	return config.WithEnv(func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	})
}

var referenceEnv = environment(map[string]string{
	"WEBHOOK_SECRET": "whsec_dGhpcyBpcyBhbiBleGFtcGxlOiBtYWtlIHlvdXIgb3duIQ==",
	"WEBHOOK_AUTH":   "Bearer example",
})

var entry = regexp.MustCompile(`\[\d+\]`)

func TestReferenceNamesEveryKey(t *testing.T) {
	cfg, err := config.Load(reference, referenceEnv)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for _, p := range config.Written(cfg) {
		written[entry.ReplaceAllString(p, "[]")] = true
	}
	keys := config.Keys()
	if len(keys) < 70 {
		t.Fatalf("only %d keys found in the structs", len(keys))
	}
	for _, k := range keys {
		if !written[k.Path] {
			t.Errorf("%s is not in the reference", k.Path)
		}
	}
}

// Each line of the reference ends with the key's true default.
func TestReferenceTellsDefaults(t *testing.T) {
	data, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(reference, referenceEnv)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	keys := config.Keys()
	checked := map[string]bool{}
	written := config.Written(cfg)
	slices.Sort(written) // consumers[0] first
	for _, path := range written {
		i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Path == entry.ReplaceAllString(path, "[]") })
		if i < 0 {
			continue // a map, or an entry of a list
		}
		want := keys[i].Default
		switch {
		case keys[i].HasDefault && want != "":
		case keys[i].Kind.String() == "bool":
			want = "false"
		default:
			want = `""`
		}
		line := lines[cfg.At(config.Path(path)).Line-1]
		if !strings.Contains(line, "#") && checked[keys[i].Path] {
			continue // a further consumer's; the first one's is explained
		}
		if !strings.HasSuffix(line, "(default "+want+")") && !(want == `""` && strings.HasSuffix(line, "(default none)")) {
			t.Errorf("%s: the line does not end with (default %s):\n%s", path, want, line)
		}
		checked[keys[i].Path] = true
	}
	if len(checked) != len(keys) {
		t.Errorf("%d keys checked, want %d", len(checked), len(keys))
	}
}

func TestExampleRunsAsItIs(t *testing.T) {
	cfg, err := config.Load("../../examples/tripline.yaml", environment(nil))
	if err != nil || len(cfg.Warnings) > 0 {
		t.Errorf("got %v, warnings %v", err, cfg.Warnings)
	}
}

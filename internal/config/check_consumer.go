package config

import (
	"slices"
	"strings"

	"github.com/tripline/tripline/internal/ingest"
)

func checkConsumers(s *source, c *Config, in *ingest.Patterns) {
	seen := map[string]Path{}
	for i := range c.Consumers {
		k := &c.Consumers[i]
		if !nameRule.MatchString(k.Name) {
			if k.Name == "" {
				s.add(k.Path.key("name"), "%s has no name: add name: NAME", k.Path)
			} else {
				s.add(k.Path.key("name"), "%s.name %s, not %q", k.Path, nameWords, k.Name)
			}
		} else if first, dup := seen[k.Name]; dup {
			s.add(k.Path.key("name"), "%s.name %q is taken by %s: names are unique", k.Path, k.Name, first)
		} else {
			seen[k.Name] = k.Path
		}
		checkMatch(s, c, k)
		checkBreaker(s, k)
		checkSink(s, c, in, k)
	}
}

func checkMatch(s *source, c *Config, k *Consumer) {
	if len(k.Match) == 0 {
		all := Match{Path: k.Path.key("match")}
		decoder{s}.defaultsOf(&all)
		k.Match = []Match{all}
	}
	for _, m := range k.Match {
		if len(m.Transitions) == 0 {
			s.add(m.Path.key("transitions"), "%s.transitions is empty, so nothing matches: list some of enter, exit, dwell, cross, inside, silent, or leave the key out", m.Path)
		}
		if slices.Contains(m.Transitions, "silent") && c.Tracking.SilentAfter == 0 {
			s.warn(m.Path.key("transitions"), "silent is never told: set tracking.silent_after")
		}
		for name, globs := range map[string][]string{"fences": m.Fences, "tags": m.Tags, "devices": m.Devices} {
			for i, g := range globs {
				if strings.TrimSpace(g) == "" {
					path := m.Path.key(name).index(i)
					s.add(path, "%s is empty: write * for all, or remove it", path)
				}
			}
		}
	}
}

func checkBreaker(s *source, k *Consumer) {
	b, path := k.Breaker, k.Path.key("breaker")
	if b.Max < b.Base {
		s.add(path.key("max"), "%s.max (%s) must be at least %s.base (%s)", path, shortDuration(b.Max), path, shortDuration(b.Base))
	}
	if k.Fallback.MaxBytes > 0 && k.Fallback.MaxBytes < 64<<10 {
		p := k.Path.key("fallback.max_bytes")
		s.add(p, "%s must be at least 64KiB, not %s", p, k.Fallback.MaxBytes)
	}
}

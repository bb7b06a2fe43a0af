package router

import (
	"slices"
	"strings"
)

// glob is a pattern for ids and tags: `*` stands for any run of characters,
// also an empty one and one with dots in it; everything else, letter case
// included, stands for itself.
type glob struct {
	literal string   // the whole pattern, where it has no *
	parts   []string // else what stands between the stars; at least two
}

func compileGlob(pattern string) glob {
	if !strings.Contains(pattern, "*") {
		return glob{literal: pattern}
	}
	return glob{parts: strings.Split(pattern, "*")}
}

// match takes time in proportion to the length of s times the number of
// stars, at worst: taking the first place where a middle part fits is never
// wrong.
func (g glob) match(s string) bool {
	if g.parts == nil {
		return s == g.literal
	}
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range g.parts[1 : len(g.parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

// globs is a set of patterns: one must match. An empty set matches all.
type globs []glob

func compileGlobs(patterns []string) globs {
	var set globs
	for _, p := range patterns {
		if p == "*" {
			return nil // the same as no pattern
		}
		set = append(set, compileGlob(p))
	}
	return set
}

func (set globs) match(s string) bool {
	if set == nil {
		return true
	}
	for _, g := range set {
		if g.match(s) {
			return true
		}
	}
	return false
}

func (set globs) matchAny(ss []string) bool {
	if set == nil {
		return true
	}
	return slices.ContainsFunc(ss, set.match)
}

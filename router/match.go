package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tripline/tripline/geofence"
)

// MatchConfig says which transitions a consumer wants. All that is set must
// hold; what is empty always does.
//
// Fences, Tags and Devices are patterns in which `*` stands for any run of
// characters, dots included; one pattern of each must fit. A transition
// without a fence (silent) fits only where Fences and Tags are empty or "*".
type MatchConfig struct {
	Fences  []string
	Tags    []string
	Devices []string
	// Transitions are names of kinds; empty means all.
	Transitions []string
	// Where is an expression in the language of expr-lang/expr that gives a
	// bool, see [WhereReference]; "" is always true.
	Where string
	// Priority is what the transitions that fit get.
	Priority Priority
}

// MatchError says which part of which entry of a match is wrong.
type MatchError struct {
	Entry int    // index in the list of entries
	Key   string // "transitions", "where", ...
	Line  int    // in Where, from 1; 0 elsewhere
	Col   int    // in Where, in characters from 1; 0 elsewhere
	Msg   string
}

func (e *MatchError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("match[%d].%s, line %d, column %d: %s", e.Entry, e.Key, e.Line, e.Col, e.Msg)
	}
	return fmt.Sprintf("match[%d].%s: %s", e.Entry, e.Key, e.Msg)
}

// Match decides whether a consumer wants a transition. There is one for every
// path that a transition may take. It is immutable and safe for concurrent
// use; nil accepts everything with normal priority.
type Match struct {
	entries []matchEntry
}

type matchEntry struct {
	fences, tags, devices globs
	kinds                 uint16 // bit 1<<kind for each accepted kind
	where                 *where // nil is always true
	priority              Priority
}

// CompileMatch compiles the entries of a match, of which the first that
// accepts a transition gives the priority. No entry accepts everything. The
// error joins one *[MatchError] for each problem.
func CompileMatch(entries ...MatchConfig) (*Match, error) {
	m := &Match{}
	var errs []error
	for i, cfg := range entries {
		e, err := compileEntry(i, cfg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.entries = append(m.entries, e)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

func compileEntry(i int, cfg MatchConfig) (matchEntry, error) {
	e := matchEntry{
		fences:   compileGlobs(cfg.Fences),
		tags:     compileGlobs(cfg.Tags),
		devices:  compileGlobs(cfg.Devices),
		priority: cfg.Priority,
	}
	var errs []error
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"fences", cfg.Fences}, {"tags", cfg.Tags}, {"devices", cfg.Devices}} {
		if slices.Contains(list.patterns, "") {
			errs = append(errs, &MatchError{Entry: i, Key: list.key, Msg: "an empty pattern fits nothing; use \"*\" for all"})
		}
	}
	if len(cfg.Transitions) == 0 {
		e.kinds = ^uint16(0)
	}
	for _, name := range cfg.Transitions {
		kind, ok := geofence.ParseKind(name)
		if !ok {
			errs = append(errs, &MatchError{Entry: i, Key: "transitions", Msg: fmt.Sprintf("%q is no transition; there are %s", name, kindList())})
			continue
		}
		e.kinds |= 1 << kind
	}
	if cfg.Priority > Low {
		errs = append(errs, &MatchError{Entry: i, Key: "priority", Msg: fmt.Sprintf("%d is no priority", cfg.Priority)})
	}
	if cfg.Where != "" {
		w, err := compileWhere(cfg.Where)
		if err != nil {
			err.Entry, err.Key = i, "where"
			errs = append(errs, err)
		}
		e.where = w
	}
	return e, errors.Join(errs...)
}

func kindList() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// Accept says whether the consumer wants the transition, and with what
// priority.
func (m *Match) Accept(tr *geofence.Transition) (Priority, bool) {
	priority, ok, _ := m.Evaluate(tr)
	return priority, ok
}

// Evaluate is Accept that also tells what went wrong. An error is a `where` that could not be evaluated (a comparison
// with an absent value, say): it counts as "does not fit", later entries have
// their say, and the first error is returned for the caller to count.
func (m *Match) Evaluate(tr *geofence.Transition) (Priority, bool, error) {
	if m == nil || len(m.entries) == 0 {
		return Normal, true, nil
	}
	var first error
	for i := range m.entries {
		e := &m.entries[i]
		if !e.fits(tr) {
			continue
		}
		if e.where != nil {
			ok, err := e.where.eval(tr)
			if err != nil && first == nil {
				first = err
			}
			if !ok {
				continue
			}
		}
		return e.priority, true, first
	}
	return Normal, false, first
}

// Wants says whether any entry accepts transitions of the kind: what nobody
// wants need not be looked for.
func (m *Match) Wants(kind geofence.Kind) bool {
	if m == nil || len(m.entries) == 0 {
		return true
	}
	return slices.ContainsFunc(m.entries, func(e matchEntry) bool { return e.kinds&(1<<kind) != 0 })
}

func (e *matchEntry) fits(tr *geofence.Transition) bool {
	if e.kinds&(1<<tr.Kind) == 0 || !e.devices.match(tr.Device) {
		return false
	}
	if tr.Fence == nil {
		return e.fences == nil && e.tags == nil
	}
	return e.fences.match(tr.Fence.ID) && e.tags.matchAny(tr.Fence.Tags)
}

// FitsFence says whether some entry could accept transitions of the fence, by
// its id and tags alone. A pattern that fits no fence is often a typo.
func (m *Match) FitsFence(f *geofence.Fence) bool {
	if m == nil || len(m.entries) == 0 {
		return true
	}
	return slices.ContainsFunc(m.entries, func(e matchEntry) bool {
		return e.fences.match(f.ID) && e.tags.matchAny(f.Tags)
	})
}

// ParsePriority returns the priority with that name: "high", "normal" (also
// "") or "low".
func ParsePriority(name string) (Priority, bool) {
	switch name {
	case "high":
		return High, true
	case "normal", "":
		return Normal, true
	case "low":
		return Low, true
	}
	return Normal, false
}

func (p Priority) String() string {
	switch p {
	case High:
		return "high"
	case Low:
		return "low"
	}
	return "normal"
}

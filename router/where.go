package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/tripline/tripline/geofence"
)

// WhereReference describes the names that a `where` may use, for help texts.
const WhereReference = `device       string
transition   string: enter, exit, dwell, cross, inside, silent
at           time at which it happened
dwell_s      number: the dwell that was reached, in seconds; nil for other transitions
initial      bool: the device's first fix was already inside
reason       string: fence_deleted, fence_changed, inactive, or ""
fence.id     string; fence.name string; fence.tags list of strings; fence.props map
fix.lat      number; fix.lon number; fix.ts time
fix.accuracy number or nil, metres; fix.speed number or nil, metres per second
fix.heading  number or nil, degrees; fix.alt number or nil, metres; fix.props map
props        the same as fix.props
Comparing nil with a number is an error, and then the transition does not
match: write (fix.speed ?? 0) < 5 to say what an absent speed means.`

// scope is what an expression sees. Pointers are nil where the value is
// absent; expr follows the others by itself.
type scope struct {
	Device     string         `expr:"device"`
	Transition string         `expr:"transition"`
	At         time.Time      `expr:"at"`
	DwellS     *float64       `expr:"dwell_s"`
	Initial    bool           `expr:"initial"`
	Reason     string         `expr:"reason"`
	Fence      scopeFence     `expr:"fence"`
	Fix        scopeFix       `expr:"fix"`
	Props      map[string]any `expr:"props"`
}

type scopeFence struct {
	ID    string         `expr:"id"`
	Name  string         `expr:"name"`
	Tags  []string       `expr:"tags"`
	Props map[string]any `expr:"props"`
}

type scopeFix struct {
	Lat      float64        `expr:"lat"`
	Lon      float64        `expr:"lon"`
	TS       time.Time      `expr:"ts"`
	Accuracy *float64       `expr:"accuracy"`
	Speed    *float64       `expr:"speed"`
	Heading  *float64       `expr:"heading"`
	Alt      *float64       `expr:"alt"`
	Props    map[string]any `expr:"props"`
}

// where is a compiled expression.
type where struct {
	program *vm.Program
	// props says whether the text mentions properties at all: only then are
	// they decoded.
	props bool
	// fences caches decoded properties by *geofence.Fence; one entry, since
	// transitions come in runs of one fence, and versions come and go.
	mu    sync.Mutex
	fence *geofence.Fence // the one whose properties are cached
	cache map[string]any
}

func compileWhere(text string) (*where, *MatchError) {
	program, err := expr.Compile(text, expr.Env(scope{}), expr.AsBool())
	if err != nil {
		return nil, whereError(err)
	}
	return &where{program: program, props: strings.Contains(text, "props")}, nil
}

// whereError says where in the expression the problem is, in the user's words
// instead of the names of our types.
func whereError(err error) *MatchError {
	e := &MatchError{Msg: err.Error(), Line: 1, Col: 1}
	var at *file.Error
	if errors.As(err, &at) {
		e.Msg, e.Line, e.Col = at.Message, at.Line, at.Column+1
	}
	e.Msg = strings.NewReplacer(
		"type router.scopeFence", "fence",
		"type router.scopeFix", "fix",
		"type router.scope", "where",
		"*float64", "float64",
		"expected bool, but got", "the result must be true or false, not",
	).Replace(e.Msg)
	return e
}

// eval says whether the transition fulfils the expression.
func (w *where) eval(tr *geofence.Transition) (bool, error) {
	s := scope{
		Device:     tr.Device,
		Transition: tr.Kind.String(),
		At:         time.UnixMilli(tr.At).UTC(),
		Initial:    tr.Initial,
		Reason:     tr.Reason,
		Fix:        fixScope(&tr.Fix),
	}
	if tr.Kind == geofence.Dwell {
		seconds := tr.Dwell.Seconds()
		s.DwellS = &seconds
	}
	if f := tr.Fence; f != nil {
		s.Fence = scopeFence{ID: f.ID, Name: f.Name, Tags: f.Tags}
	}
	if w.props {
		if err := w.addProps(&s, tr); err != nil {
			return false, err
		}
	}
	result, err := expr.Run(w.program, &s)
	if err != nil {
		return false, fmt.Errorf("where: %w", err)
	}
	ok, _ := result.(bool) // compiled AsBool
	return ok, nil
}

func fixScope(fix *geofence.Fix) scopeFix {
	s := scopeFix{Lat: fix.Lat, Lon: fix.Lon, TS: time.UnixMilli(fix.TS).UTC()}
	for _, field := range []struct {
		has geofence.Fields
		val float64
		dst **float64
	}{
		{geofence.HasAccuracy, fix.Accuracy, &s.Accuracy},
		{geofence.HasSpeed, fix.Speed, &s.Speed},
		{geofence.HasHeading, fix.Heading, &s.Heading},
		{geofence.HasAlt, fix.Alt, &s.Alt},
	} {
		if fix.Has&field.has != 0 {
			*field.dst = &field.val
		}
	}
	return s
}

func (w *where) addProps(s *scope, tr *geofence.Transition) error {
	if len(tr.Fix.Props) != 0 {
		if err := json.Unmarshal(tr.Fix.Props, &s.Fix.Props); err != nil {
			return fmt.Errorf("where: properties of the fix: %w", err)
		}
		s.Props = s.Fix.Props
	}
	if tr.Fence == nil {
		return nil
	}
	props, err := w.fenceProps(tr.Fence)
	if err != nil {
		return fmt.Errorf("where: properties of fence %q: %w", tr.Fence.ID, err)
	}
	s.Fence.Props = props
	return nil
}

func (w *where) fenceProps(f *geofence.Fence) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fence == f {
		return w.cache, nil
	}
	var props map[string]any
	if len(f.Props) != 0 {
		if err := json.Unmarshal(f.Props, &props); err != nil {
			return nil, err
		}
	}
	w.fence, w.cache = f, props
	return props, nil
}

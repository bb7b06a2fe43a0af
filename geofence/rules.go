package geofence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// The largest values that the rules take.
const (
	maxBufferM   = 100_000
	maxCorridorM = 1_000_000
	maxConfirm   = 1000
	maxDwells    = 32
)

// radius is the property `radius_m`.
type radius struct {
	m  float64
	at span
}

// properties are a feature's properties, sorted out.
type properties struct {
	id       span
	name     string
	tags     []string
	radius   radius
	rules    rules
	band     int             // offset of the last altitude limit
	rest     json.RawMessage // those that are not rules
	problems []*placeError
}

// zones remembers time zones, which are costly to load.
type zones map[string]*time.Location

func (z zones) load(name string) (*time.Location, error) {
	if loc, ok := z[name]; ok {
		return loc, nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone: an IANA time zone such as Europe/Berlin is needed")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone: %q is not an IANA time zone", name)
	}
	z[name] = loc
	return loc, nil
}

// properties consumes the value of a feature's properties. The scanner may be
// at nothing.
func (s *scanner) properties(z zones) *properties {
	p := &properties{rules: rules{minAlt: math.Inf(-1), maxAlt: math.Inf(1)}}
	if s.pos == len(s.data) || s.isNull() {
		return p
	}
	if s.peek() != '{' {
		p.fail(s.pos, "properties: an object is needed")
		return p
	}
	rest := []byte{'{'}
	s.object(func(key string) {
		s.peek()
		from := s.pos
		at := s.skip()
		switch key {
		case "id":
			p.id = at
		case "name":
			p.name, _ = s.at(at).str()
		case "tags":
			p.readTags(s, at)
		default:
			if p.rule(s, key, at, z) {
				return
			}
		}
		rest = s.appendMember(rest, key, span{from, at.to})
	})
	rest = append(rest, '}')
	switch {
	case s.err != nil:
		p.problems = append(p.problems, s.err)
	case !json.Valid(rest):
		p.fail(s.pos, "properties: not valid JSON")
	default:
		p.rest = slices.Clip(rest)
	}
	p.checkBand()
	return p
}

// appendMember adds a member to an object that is being written, without white
// space.
func (s *scanner) appendMember(dst []byte, key string, at span) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = appendJSONString(dst, key)
	dst = append(dst, ':')
	b := bytes.NewBuffer(dst)
	if err := json.Compact(b, s.data[at.from:at.to]); err != nil {
		return append(dst, '!') // seen by the check of the whole
	}
	return b.Bytes()
}

func appendJSONString(dst []byte, v string) []byte {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b, err := json.Marshal(v)
			if err != nil {
				b = []byte(`""`) // a string always marshals
			}
			return append(dst, b...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, v...)
	return append(dst, '"')
}

func (p *properties) fail(off int, format string, args ...any) {
	p.problems = append(p.problems, &placeError{off, fmt.Sprintf(format, args...)})
}

func (p *properties) readTags(s *scanner, at span) {
	if s.data[at.from] == 'n' {
		return
	}
	if json.Unmarshal(s.data[at.from:at.to], &p.tags) != nil {
		p.tags = nil
		p.fail(at.from, "tags: a list of strings is needed")
	}
}

// rule reads a property that is a rule of the fence; false if it isn't one.
func (p *properties) rule(s *scanner, key string, at span, z zones) bool {
	r := &p.rules
	switch key {
	case "radius_m":
		p.radius = radius{p.number(s, key, at, 0, halfCircleM), at}
		if p.radius.m == 0 && s.data[at.from] == '0' {
			p.fail(at.from, "radius_m: more than 0 is needed")
		}
	case "exit_buffer_m":
		r.exitBufferM = p.number(s, key, at, 0, maxBufferM)
		r.set |= setExitBuffer
	case "max_accuracy_m":
		r.maxAccuracyM = p.number(s, key, at, 0, math.MaxFloat64)
		r.set |= setMaxAccuracy
	case "confirm":
		n := p.number(s, key, at, 0, maxConfirm)
		if n != math.Trunc(n) {
			p.fail(at.from, "confirm: a whole number is needed")
		}
		r.confirm = int(n)
		r.set |= setConfirm
	case "min_alt_m":
		r.minAlt = p.number(s, key, at, -math.MaxFloat64, math.MaxFloat64)
		r.set |= setBand
		p.band = at.from
	case "max_alt_m":
		r.maxAlt = p.number(s, key, at, -math.MaxFloat64, math.MaxFloat64)
		r.set |= setBand
		p.band = at.from
	case "dwell":
		r.dwell = p.readDwell(s, at)
		r.set |= setDwell
	case "active":
		p.readActive(s, at, z)
	default:
		return false
	}
	return true
}

// number reads a number between the limits.
func (p *properties) number(s *scanner, key string, at span, least, most float64) float64 {
	n := s.at(at)
	v := n.number()
	switch {
	case n.err != nil || n.pos != at.to:
		p.fail(at.from, "%s: a number is needed", key)
		return 0
	case v < least || v > most:
		p.fail(at.from, "%s: %s is not in %s..%s", key, s.data[at.from:at.to], plain(least), plain(most))
		return 0
	}
	return v
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

func (p *properties) checkBand() {
	if p.rules.minAlt > p.rules.maxAlt {
		p.fail(p.band, "min_alt_m %s is above max_alt_m %s", plain(p.rules.minAlt), plain(p.rules.maxAlt))
	}
}

// readDwell reads a duration or a list of them: "5m", or a number of seconds.
func (p *properties) readDwell(s *scanner, at span) []time.Duration {
	in := s.at(at)
	var dwell []time.Duration
	one := func() {
		in.peek()
		off := in.pos
		raw := in.skip()
		d, err := parseDuration(s.data[raw.from:raw.to])
		if in.err == nil && err != nil {
			in.fail(off, "dwell: %v", err)
		}
		dwell = append(dwell, d)
	}
	if in.peek() == '[' {
		in.array(one)
	} else {
		one()
	}
	if len(dwell) > maxDwells {
		in.fail(at.from, "dwell: more than %d durations", maxDwells)
	}
	if in.err != nil {
		p.problems = append(p.problems, in.err)
		return nil
	}
	slices.Sort(dwell)
	return slices.Compact(dwell)
}

// maxDwell bounds a duration; a year is more than any stay that matters.
const maxDwell = 366 * 24 * time.Hour

func parseDuration(raw []byte) (time.Duration, error) {
	var d time.Duration
	var text string
	var seconds float64
	switch {
	case json.Unmarshal(raw, &seconds) == nil && raw[0] != 'n':
		d = time.Duration(min(seconds, 1e10) * float64(time.Second))
	case json.Unmarshal(raw, &text) == nil && raw[0] != 'n':
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return 0, fmt.Errorf("%q is not a duration such as 5m", text)
		}
	default:
		return 0, fmt.Errorf("a duration such as \"5m\" is needed")
	}
	if d < time.Millisecond || d > maxDwell {
		return 0, fmt.Errorf("%v is not in 1ms..%v", d, maxDwell)
	}
	return d.Truncate(time.Millisecond), nil
}

// activeRule is how a schedule is written.
type activeRule struct {
	Zone  string   `json:"zone"`
	Days  []string `json:"days"`
	Hours []string `json:"hours"`
}

// readActive reads a schedule: one object or a list of them.
func (p *properties) readActive(s *scanner, at span, z zones) {
	raw := s.data[at.from:at.to]
	if raw[0] == 'n' {
		return
	}
	var written []activeRule
	if raw[0] == '{' {
		written = make([]activeRule, 1)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var err error
	if len(written) == 1 {
		err = d.Decode(&written[0])
	} else {
		err = d.Decode(&written)
	}
	if err != nil {
		p.fail(at.from, `active: it looks like {"zone": "Europe/Berlin", "days": ["mon-fri"], "hours": ["07:00-19:00"]}`)
		return
	}
	active := &schedule{}
	for _, w := range written {
		if err := w.compile(active, z); err != nil {
			p.fail(at.from, "active: %v", err)
			return
		}
	}
	if len(active.windows) == 0 {
		p.fail(at.from, "active: the list is empty, so the fence would never be active")
		return
	}
	p.rules.active = active
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		p.rules.activeWritten = compact.Bytes()
	}
}

func (a *activeRule) compile(to *schedule, z zones) error {
	zone, err := z.load(a.Zone)
	if err != nil {
		return err
	}
	days := uint8(0)
	for _, text := range a.Days {
		d, err := parseDays(text)
		if err != nil {
			return err
		}
		days |= d
	}
	if len(a.Days) == 0 {
		days = 1<<7 - 1
	}
	for _, text := range a.Hours {
		from, until, err := parseHours(text)
		if err != nil {
			return err
		}
		to.windows = append(to.windows, window{zone, days, from, until})
	}
	if len(a.Hours) == 0 {
		to.windows = append(to.windows, window{zone, days, 0, dayMinutes})
	}
	return nil
}

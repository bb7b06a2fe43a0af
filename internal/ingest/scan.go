package ingest

import "encoding/json"

// maxDepth is how deep a payload may nest. A location has no use for more,
// and one machine word then holds what is open.
const maxDepth = 64

// kind is the JSON type of a value. The zero value means that a key is absent.
type kind uint8

const (
	absent kind = iota
	null
	number
	text
	escaped // a string with at least one escape
	object
	array
	boolean
)

func (k kind) String() string {
	return [...]string{"absent", "null", "a number", "a string", "a string", "an object", "an array", "a boolean"}[k]
}

// value is where the value of a key is in the payload. Of a number it has the
// value at once, so that no digit is read twice.
type value struct {
	kind       kind
	start, end int
	num        float64
}

// scanner walks over one JSON text. It accepts what encoding/json accepts, up
// to maxDepth.
type scanner struct {
	b   []byte
	i   int
	err string // what is wrong at i
}

func (s *scanner) fail(err string) bool {
	if s.err == "" {
		s.err = err
	}
	return false
}

// document reads the whole text, which must be one object, and notes the
// values of the known keys. Of a repeated key the last one counts, as in
// encoding/json.
func (s *scanner) document(values *[keys]value) bool {
	s.space()
	if !s.take('{') {
		return s.fail("expected an object")
	}
	s.space()
	if s.take('}') {
		return s.atEnd()
	}
	for {
		k, ok := s.member()
		if !ok {
			return false
		}
		v, ok := s.value()
		if !ok {
			return false
		}
		if k != keyUnknown {
			values[k] = v
		}
		s.space()
		if s.take(',') {
			s.space()
			continue
		}
		if s.take('}') {
			return s.atEnd()
		}
		return s.fail("expected a comma or the end of the object")
	}
}

func (s *scanner) atEnd() bool {
	s.space()
	if s.i < len(s.b) {
		return s.fail("more after the end of the object")
	}
	return true
}

// member reads a key and the colon behind it.
func (s *scanner) member() (key, bool) {
	start := s.i
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return 0, s.fail("expected a key")
	}
	esc, ok := s.str()
	if !ok {
		return 0, false
	}
	k := keyUnknown
	if esc {
		k = keyOf([]byte(unquote(s.b[start:s.i])))
	} else {
		k = keyOf(s.b[start+1 : s.i-1])
	}
	s.space()
	if !s.take(':') {
		return 0, s.fail("expected a colon")
	}
	s.space()
	return k, true
}

// value reads one value of any kind.
func (s *scanner) value() (v value, ok bool) {
	if s.i >= len(s.b) {
		return v, s.fail("expected a value")
	}
	v.start = s.i
	switch c := s.b[s.i]; c {
	case '{':
		v.kind, ok = object, s.nested()
	case '[':
		v.kind, ok = array, s.nested()
	default:
		v.kind, v.num, ok = s.scalar()
	}
	v.end = s.i
	return v, ok
}

// scalar reads a value that nothing nests in.
func (s *scanner) scalar() (k kind, num float64, ok bool) {
	if s.i >= len(s.b) {
		return 0, 0, s.fail("expected a value")
	}
	switch s.b[s.i] {
	case '"':
		esc, ok := s.str()
		if esc {
			return escaped, 0, ok
		}
		return text, 0, ok
	case 't':
		return boolean, 0, s.literal("true")
	case 'f':
		return boolean, 0, s.literal("false")
	case 'n':
		return null, 0, s.literal("null")
	}
	num, s.i, ok = scanNumber(s.b, s.i)
	if !ok {
		return 0, 0, s.fail("expected a value")
	}
	return number, num, true
}

// nested reads an object or array and all that is in it.
func (s *scanner) nested() bool {
	var objects uint64 // bit d: what is open at depth d is an object
	depth := 0
	for {
		switch {
		case s.take('{'):
			if depth == maxDepth {
				return s.fail("nested too deep")
			}
			objects |= 1 << depth
			depth++
			s.space()
			if s.i < len(s.b) && s.b[s.i] == '}' {
				break
			}
			if _, ok := s.member(); !ok {
				return false
			}
			continue
		case s.take('['):
			if depth == maxDepth {
				return s.fail("nested too deep")
			}
			objects &^= 1 << depth
			depth++
			s.space()
			if s.i < len(s.b) && s.b[s.i] == ']' {
				break
			}
			continue
		default:
			if _, _, ok := s.scalar(); !ok {
				return false
			}
		}
		more, ok := s.closing(&depth, objects)
		if !ok || !more {
			return ok
		}
	}
}

// closing reads what may stand between the end of a value and the beginning
// of the next: ends of what is open, and a comma. It tells whether another
// value follows.
func (s *scanner) closing(depth *int, objects uint64) (more, ok bool) {
	for *depth > 0 {
		inObject := objects>>(*depth-1)&1 == 1
		s.space()
		switch {
		case s.take(','):
			s.space()
			if inObject {
				_, ok := s.member()
				return true, ok
			}
			return true, true
		case inObject && s.take('}'), !inObject && s.take(']'):
			*depth--
		default:
			return false, s.fail("expected a comma or a closing bracket")
		}
	}
	return false, true
}

// str reads the string that begins at i.
func (s *scanner) str() (esc, ok bool) {
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return esc, true
		case c == '\\':
			esc = true
			if !s.escape() {
				return esc, s.fail("invalid escape in a string")
			}
		case c < ' ':
			return esc, s.fail("control character in a string")
		}
	}
	return esc, s.fail("string without an end")
}

// escape reads the escape that begins at i and stops on its last byte.
func (s *scanner) escape() bool {
	s.i++
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			s.i++
			if s.i >= len(s.b) || !isHex(s.b[s.i]) {
				return false
			}
		}
		return true
	}
	return false
}

func (s *scanner) literal(want string) bool {
	if len(s.b)-s.i < len(want) || string(s.b[s.i:s.i+len(want)]) != want {
		return s.fail("expected a value")
	}
	s.i += len(want)
	return true
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// unquote resolves the escapes of a quoted string that was scanned. It
// allocates; no device that matters for speed escapes its keys.
func unquote(quoted []byte) string {
	var out string
	if json.Unmarshal(quoted, &out) != nil {
		return ""
	}
	return out
}

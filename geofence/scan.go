package geofence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// scanner reads JSON in place, so that an error can say where it is and large
// files cost one pass. The first error sticks.
type scanner struct {
	data []byte
	pos  int
	err  *placeError
}

// placeError is a problem at an offset of the file.
type placeError struct {
	off int
	msg string
}

// span is a value's place in the file.
type span struct{ from, to int }

const maxDepth = 100 // of nested values

func (s *scanner) fail(off int, format string, args ...any) {
	if s.err == nil {
		s.err = &placeError{off, fmt.Sprintf(format, args...)}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, or fails.
func (s *scanner) take(c byte) bool {
	if s.err != nil {
		return false
	}
	if got := s.peek(); got != c {
		s.unexpected(got, strconv.QuoteRune(rune(c)))
		return false
	}
	s.pos++
	return true
}

func (s *scanner) unexpected(got byte, want string) {
	if s.pos >= len(s.data) {
		s.fail(s.pos, "the file ends where %s should be", want)
		return
	}
	s.fail(s.pos, "%q where %s should be", rune(got), want)
}

// more says whether a list that ends with end goes on: it consumes the comma
// before any item but the first, or the end.
func (s *scanner) more(end byte, first bool) bool {
	if s.err != nil {
		return false
	}
	if s.peek() == end {
		s.pos++
		return false
	}
	return first || s.take(',')
}

// object calls member for each member; it has to consume the value.
func (s *scanner) object(member func(key string)) {
	if !s.take('{') {
		return
	}
	for first := true; s.more('}', first); first = false {
		key, ok := s.str()
		if ok && s.take(':') {
			member(key)
		}
	}
}

// array calls item for each item; it has to consume it.
func (s *scanner) array(item func()) {
	if !s.take('[') {
		return
	}
	for first := true; s.more(']', first); first = false {
		item()
	}
}

// rawString consumes a string and returns its place, quotes included.
func (s *scanner) rawString() (at span, escaped, ok bool) {
	if s.err != nil {
		return span{}, false, false
	}
	if got := s.peek(); got != '"' {
		s.unexpected(got, "a string")
		return span{}, false, false
	}
	from := s.pos
	for i := from + 1; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return span{from, s.pos}, escaped, true
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			s.fail(i, "a control character inside a string")
			return span{}, false, false
		}
	}
	s.fail(from, "the string doesn't end")
	return span{}, false, false
}

// str consumes a string and returns its value.
func (s *scanner) str() (string, bool) {
	at, escaped, ok := s.rawString()
	if !ok {
		return "", false
	}
	raw := s.data[at.from:at.to]
	if !escaped {
		return string(bytes.ToValidUTF8(raw[1:len(raw)-1], []byte("\uFFFD"))), true
	}
	var v string
	if err := json.Unmarshal(raw, &v); err != nil {
		s.fail(at.from, "a bad escape inside a string")
		return "", false
	}
	return v, true
}

// number consumes a number.
func (s *scanner) number() float64 {
	if s.err != nil {
		return 0
	}
	c := s.peek()
	from := s.pos
	if c != '-' && (c < '0' || c > '9') {
		s.unexpected(c, "a number")
		return 0
	}
	for s.pos < len(s.data) && isNumberByte(s.data[s.pos]) {
		s.pos++
	}
	text := s.data[from:s.pos]
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !validNumber(text) {
		s.fail(from, "%q is not a finite number", text)
	}
	return v
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

// validNumber refuses what ParseFloat takes and JSON doesn't: leading zeros,
// and a point without digits on both sides.
func validNumber(b []byte) bool {
	if b[0] == '-' {
		b = b[1:]
	}
	if len(b) == 0 || b[0] < '0' || b[0] > '9' || len(b) > 1 && b[0] == '0' && b[1] >= '0' && b[1] <= '9' {
		return false
	}
	i := bytes.IndexByte(b, '.')
	return i < 0 || i+1 < len(b) && b[i+1] >= '0' && b[i+1] <= '9'
}

// skip consumes any value and returns its place.
func (s *scanner) skip() span { return s.skipTo(maxDepth) }

func (s *scanner) skipTo(depth int) span {
	c := s.peek()
	from := s.pos
	switch {
	case s.err != nil:
	case depth == 0:
		s.fail(from, "values are nested too deeply")
	case c == '{':
		s.pos++
		for first := true; s.more('}', first); first = false {
			if _, _, ok := s.rawString(); ok && s.take(':') {
				s.skipTo(depth - 1)
			}
		}
	case c == '[':
		s.pos++
		for first := true; s.more(']', first); first = false {
			s.skipTo(depth - 1)
		}
	case c == '"':
		s.rawString()
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	case c == '-' || c >= '0' && c <= '9':
		for s.pos < len(s.data) && isNumberByte(s.data[s.pos]) {
			s.pos++
		}
		if !validNumber(s.data[from:s.pos]) {
			s.fail(from, "%q is not a number", s.data[from:s.pos])
		}
	default:
		s.unexpected(c, "a value")
	}
	return span{from, s.pos}
}

func (s *scanner) word(w string) {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(w)) {
		s.unexpected(s.data[s.pos], w)
		return
	}
	s.pos += len(w)
}

// isNull says whether the next value is null, and consumes it then.
func (s *scanner) isNull() bool {
	if s.err == nil && s.peek() == 'n' {
		s.word("null")
		return s.err == nil
	}
	return false
}

// at returns a scanner of one value of the same file.
func (s *scanner) at(v span) *scanner { return &scanner{data: s.data[:v.to], pos: v.from} }

// place turns an offset into a line and a column in bytes, both from 1.
func place(data []byte, off int) (line, column int) {
	before := data[:min(off, len(data))]
	before = bytes.TrimPrefix(before, byteOrderMark)
	line = bytes.Count(before, []byte{'\n'}) + 1
	return line, len(before) - bytes.LastIndexByte(before, '\n')
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

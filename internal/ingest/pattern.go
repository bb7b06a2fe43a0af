package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxDevice is the longest device id that is accepted, in bytes.
const MaxDevice = 256

// Patterns are the NATS subjects that locations arrive on, such as
// `location.*`. A device's id is what the wildcards stand for, joined by dots,
// exactly as it is in the subject. No two patterns have the same number of
// wildcards, so that a device id names one subject, and one subject one
// partition. That is also why an MQTT level with a dot in it, which the server
// writes as `//`, stays as it is: decoded, two subjects could name one device.
type Patterns struct {
	namespace string
	list      []pattern // by number of wildcards
}

type pattern struct {
	subject string
	tokens  []string
	wild    int // how many wildcards
	// adjacent: the wildcards follow each other, so that the id is a part of
	// the subject as it is.
	adjacent bool
}

// PatternError is a configured subject that can't be used.
type PatternError struct {
	Index   int // in the list that was given
	Subject string
	Msg     string
}

func (e *PatternError) Error() string { return fmt.Sprintf("subject %q: %s", e.Subject, e.Msg) }

// ParsePatterns checks the configured subjects. The error joins one
// *PatternError for each that can't be used.
func ParsePatterns(namespace string, subjects []string) (*Patterns, error) {
	if err := checkNamespace(namespace); err != nil {
		return nil, err
	}
	if len(subjects) == 0 {
		return nil, errors.New("no subjects: name at least one, such as location.*")
	}
	p := &Patterns{namespace: namespace}
	var errs []error
	for i, subject := range subjects {
		pat, msg := parsePattern(subject)
		if msg == "" {
			msg = p.clash(pat)
		}
		if msg != "" {
			errs = append(errs, &PatternError{Index: i, Subject: subject, Msg: msg})
			continue
		}
		p.list = append(p.list, pat)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(p.list, func(a, b pattern) int { return a.wild - b.wild })
	return p, nil
}

// checkNamespace: it becomes a subject token and the beginning of stream names.
func checkNamespace(namespace string) error {
	ok := namespace != ""
	for i := range len(namespace) {
		c := namespace[i]
		ok = ok && (isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '-' || c == '_')
	}
	if !ok {
		return fmt.Errorf("namespace %q: use letters, digits, - and _", namespace)
	}
	return nil
}

func parsePattern(subject string) (pattern, string) {
	p := pattern{subject: subject, tokens: strings.Split(subject, "."), adjacent: true}
	last := -1
	for i, token := range p.tokens {
		switch {
		case token == "":
			return p, "has an empty token"
		case token == ">":
			return p, "a device id has a fixed number of tokens: write one * for each instead of >"
		case token == "*":
			p.adjacent = p.adjacent && (last < 0 || last == i-1)
			last = i
			p.wild++
		case strings.ContainsAny(token, "*>"):
			return p, fmt.Sprintf("%q: a wildcard stands alone between dots", token)
		case strings.ContainsAny(token, " \t\r\n\x00") || !utf8.ValidString(token):
			return p, fmt.Sprintf("%q can't be part of a subject", token)
		}
	}
	switch {
	case p.wild == 0:
		return p, "has no wildcard: the device id is what * stands for"
	case p.tokens[0] == "*":
		return p, "begins with a wildcard, and would take in other services' subjects; begin with a word"
	case p.tokens[0][0] == '$' || p.tokens[0][0] == '_':
		return p, "subjects that begin with $ or _ belong to NATS"
	}
	return p, ""
}

// clash says what keeps a pattern from standing beside those before it.
func (p *Patterns) clash(pat pattern) string {
	if pat.tokens[0] == p.namespace {
		return fmt.Sprintf("%s.> is what the router uses itself; choose another first token, or another namespace", p.namespace)
	}
	for _, other := range p.list {
		if pat.wild == other.wild {
			return fmt.Sprintf("has as many wildcards as %q, so a device id could mean either; give each its own number", other.subject)
		}
		if overlap(pat.tokens, other.tokens) {
			return fmt.Sprintf("takes in subjects of %q as well", other.subject)
		}
	}
	return ""
}

func overlap(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && a[i] != "*" && b[i] != "*" {
			return false
		}
	}
	return true
}

// Subjects returns the patterns.
func (p *Patterns) Subjects() []string {
	subjects := make([]string, len(p.list))
	for i := range p.list {
		subjects[i] = p.list[i].subject
	}
	return subjects
}

// Device returns the id of the device that publishes on a subject. The error
// is a *Refusal. It allocates only for a pattern with a word between its
// wildcards.
func (p *Patterns) Device(subject string) (string, error) {
	for i := range p.list {
		if id, ok := p.list[i].device(subject); ok {
			if r := checkDeviceID(id); r != nil {
				return "", r
			}
			return id, nil
		}
	}
	return "", refuse(Device, "subject %q fits none of %s", subject, strings.Join(p.Subjects(), ", "))
}

// device takes the id out of a subject, if the pattern fits it.
func (p *pattern) device(subject string) (string, bool) {
	first, end, pos := -1, 0, 0
	for i, token := range p.tokens {
		stop := len(subject)
		if dot := strings.IndexByte(subject[min(pos, stop):], '.'); dot >= 0 {
			stop = pos + dot
		}
		if pos > stop || (stop == len(subject)) != (i == len(p.tokens)-1) {
			return "", false // another number of tokens
		}
		if token == "*" {
			if first < 0 {
				first = pos
			}
			end = stop
		} else if subject[pos:stop] != token {
			return "", false
		}
		pos = stop + 1
	}
	if p.adjacent {
		return subject[first:end], true
	}
	return p.join(subject), true
}

// join puts together the tokens of a fitting subject that wildcards stand for.
func (p *pattern) join(subject string) string {
	var id strings.Builder
	i := 0
	for token := range strings.SplitSeq(subject, ".") {
		if p.tokens[i] == "*" {
			if id.Len() > 0 {
				id.WriteByte('.')
			}
			id.WriteString(token)
		}
		i++
	}
	return id.String()
}

// Subject returns the subject that a device publishes on: that of the pattern
// with as many wildcards as its id has tokens. The error is a *Refusal.
func (p *Patterns) Subject(device string) (string, error) {
	if r := checkDeviceID(device); r != nil {
		return "", r
	}
	ids := strings.Split(device, ".")
	for i := range p.list {
		if p.list[i].wild != len(ids) {
			continue
		}
		tokens := slices.Clone(p.list[i].tokens)
		for j := range tokens {
			if tokens[j] == "*" {
				tokens[j], ids = ids[0], ids[1:]
			}
		}
		return strings.Join(tokens, "."), nil
	}
	return "", refuse(Device, "device %q has %d tokens; the subjects take %s", device, len(ids), p.counts())
}

// counts says which patterns exist: "1 (location.*) or 2 (owntracks.*.*)".
func (p *Patterns) counts() string {
	words := make([]string, len(p.list))
	for i, pat := range p.list {
		words[i] = fmt.Sprintf("%d (%s)", pat.wild, pat.subject)
	}
	return strings.Join(words, " or ")
}

// checkDeviceID refuses what NATS would take for a wildcard (an MQTT client
// can store such a subject), and what can't stand in a JSON text.
func checkDeviceID(id string) *Refusal {
	switch {
	case len(id) > MaxDevice:
		return refuse(Device, "device id of %d bytes; at most %d are accepted", len(id), MaxDevice)
	case !utf8.ValidString(id):
		return refuse(Device, "device id %q is not UTF-8", id)
	}
	start := 0
	for i := 0; i <= len(id); i++ {
		if i < len(id) && id[i] != '.' {
			if c := id[i]; c <= ' ' || c == 0x7f {
				return refuse(Device, "device id %q has a space or a control character in it", id)
			}
			continue
		}
		switch id[start:i] {
		case "":
			return refuse(Device, "device id %q has an empty token", id)
		case "*", ">":
			return refuse(Device, "device id %q has a wildcard in it", id)
		}
		start = i + 1
	}
	return nil
}

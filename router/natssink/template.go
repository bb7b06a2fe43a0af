package natssink

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tripline/tripline/router"
)

// maxToken bounds what a placeholder becomes, in bytes: the server refuses
// protocol lines beyond 4 KiB.
const maxToken = 128

// template is a subject with placeholders: text and fields take turns,
// beginning with text.
type template struct {
	text   []string
	fields []string // one fewer than text
}

// fields that a template may hold.
var fields = []string{"consumer", "device", "fence", "namespace", "transition"}

// parseTemplate reads a subject; what is known of it beforehand is filled in.
func parseTemplate(subject, consumer, namespace string) (template, error) {
	var t template
	rest := strings.NewReplacer("{consumer}", Token(consumer), "{namespace}", Token(namespace)).Replace(subject)
	var text strings.Builder // for the check, with a token for each field
	for {
		before, after, found := strings.Cut(rest, "{")
		t.text = append(t.text, before)
		text.WriteString(before)
		if !found {
			break
		}
		field, tail, closed := strings.Cut(after, "}")
		if !closed || !slices.Contains(fields, field) {
			return t, fmt.Errorf("subject %q: {%s: the placeholders are {%s}",
				subject, after, strings.Join(fields, "}, {"))
		}
		t.fields = append(t.fields, field)
		text.WriteString("x")
		rest = tail
	}
	if err := checkSubject(text.String()); err != nil {
		return t, fmt.Errorf("subject %w", err)
	}
	return t, nil
}

// checkSubject says what is wrong with a subject to publish on.
func checkSubject(s string) error {
	switch {
	case s == "":
		return errors.New("is missing")
	case strings.ContainsAny(s, "*>"):
		return fmt.Errorf("%q: wildcards can't be published to", s)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("%q: spaces and control characters are not allowed", s)
	case slices.Contains(strings.Split(s, "."), ""):
		return fmt.Errorf("%q: has an empty token", s)
	case strings.HasPrefix(s, "$"), strings.HasPrefix(s, "_"):
		return fmt.Errorf("%q: subjects that begin with $ or _ belong to NATS", s)
	}
	return nil
}

// fill returns the subject for a trigger.
func (t template) fill(tr *router.Trigger) string {
	if len(t.fields) == 0 {
		return t.text[0]
	}
	var b strings.Builder
	for i, text := range t.text {
		b.WriteString(text)
		if i == len(t.fields) {
			break
		}
		switch t.fields[i] {
		case "device":
			b.WriteString(Token(tr.Device))
		case "fence":
			b.WriteString(Token(tr.Fence))
		case "transition":
			b.WriteString(Token(tr.Kind.String()))
		}
	}
	return b.String()
}

// Token makes one subject token of an id, for routing and not for identity:
// what separates or matches tokens (dots, wildcards, spaces, control
// characters) becomes "_", an empty id too, and what is longer than 128 bytes
// is cut. The ids themselves are in the body.
func Token(id string) string {
	if id == "" {
		return "_"
	}
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '.' || r == '*' || r == '>' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(id, "_"))
	if len(clean) > maxToken {
		clean = strings.ToValidUTF8(clean[:maxToken], "")
	}
	return clean
}

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where something stands in the configuration file.
type Place struct {
	File   string
	Line   int // from 1; 0 where only the file is known
	Column int // from 1, counted in characters
}

// String is file:line:column, as editors and terminals understand it.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong, or worth a warning, in a configuration.
type Problem struct {
	Place
	// Path is the key's way from the top, as in consumers[0].breaker.p99.
	Path string
	// Message says what is wrong and what to do about it.
	Message string
	// Source is the offending line, with secrets masked; it may be empty.
	Source string

	mark int // the column of Source that is meant
}

// Error is the place, the message, and the offending line with a mark.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.OneLine())
	if p.Source == "" {
		return b.String()
	}
	gutter := fmt.Sprintf("%5d | ", p.Line)
	fmt.Fprintf(&b, "\n%s%s\n%s%s^", gutter, p.Source, strings.Repeat(" ", len(gutter)-2)+"| ", indentTo(p.Source, p.mark))
	return b.String()
}

// OneLine is the place and the message, without the offending line: for a log.
func (p Problem) OneLine() string { return fmt.Sprintf("%s: %s", p.Place, p.Message) }

// indentTo is the white space that puts a mark under a column of a line; tabs
// stay tabs, so that the mark lands where the terminal puts the text.
func indentTo(line string, column int) string {
	var b strings.Builder
	for i, r := range []rune(line) {
		if i >= column-1 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Problems are all the errors of a configuration, in the order of the file.
type Problems []Problem

// Error joins the problems, one below the other.
func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "\n")
}

// OneLine is what is wrong on a single line: for a log.
func (ps Problems) OneLine() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.OneLine()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.As find a single Problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

package main

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is how a cell looks on a terminal, as an ANSI sequence.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	faint  style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
)

const styleEnd = "\x1b[0m"

// paint styles a text if colours are wanted.
func paint(colour bool, s style, text string) string {
	if !colour || s == plain || text == "" {
		return text
	}
	return string(s) + text + styleEnd
}

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

// table prints rows in columns that fit their content.
type table struct {
	colour bool
	right  []bool // columns whose cells stand right, as numbers do
	rows   [][]cell
}

// newTable makes a table with a head. A column whose head begins with ">"
// stands right.
func newTable(colour bool, head ...string) *table {
	t := &table{colour: colour, right: make([]bool, len(head))}
	row := make([]cell, len(head))
	for i, h := range head {
		name, right := strings.CutPrefix(h, ">")
		row[i], t.right[i] = cell{name, bold}, right
	}
	t.rows = append(t.rows, row)
	return t
}

// add appends a row of plain cells.
func (t *table) add(texts ...string) {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i] = cell{text: text}
	}
	t.addCells(row...)
}

// addCells appends a row. What would break the line, or the terminal, in a
// cell that came from outside is replaced.
func (t *table) addCells(row ...cell) {
	for i := range row {
		row[i].text = printable(row[i].text)
	}
	t.rows = append(t.rows, row)
}

// write prints the table. The last column isn't filled up.
func (t *table) write(out io.Writer) error {
	width := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			text := paint(t.colour, c.style, c.text)
			switch {
			case t.right[i]:
				b.WriteString(pad + text)
			case i == len(row)-1:
				b.WriteString(text)
			default:
				b.WriteString(text + pad)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printable replaces control characters by a space.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

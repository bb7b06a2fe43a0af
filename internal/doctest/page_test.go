package doctest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

// page is a Markdown file, taken apart.
type page struct {
	path   string // from the root
	text   string
	blocks []block
	prose  string // the text without its blocks, with as many lines
}

// block is a fenced block, or a comment to the tests.
type block struct {
	line  int // of the first line inside
	lang  string
	info  map[string]string // behind the language
	text  string
	order string // of a comment: "stop NAME"
}

func (b block) has(key string) bool { _, ok := b.info[key]; return ok }

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	comment = regexp.MustCompile(`^<!-- doctest: (.*) -->$`)
	setting = regexp.MustCompile(`([a-z]+)(?:=("[^"]*"|\S+))?`)
)

// pages are all Markdown files that belong to the documentation.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md", "deploy/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			found = append(found, read(t, strings.TrimPrefix(filepath.ToSlash(f), root+"/")))
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages found", len(found))
	}
	return found
}

// read takes one page apart.
func read(t *testing.T, path string) page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: path, text: string(data)}
	var open *block
	var indent string
	var prose strings.Builder
	for i, line := range strings.Split(p.text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[2] == "":
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil:
			lang, info, _ := strings.Cut(m[2], " ")
			open, indent = &block{line: i + 2, lang: lang, info: settings(info)}, m[1]
		default:
			if c := comment.FindStringSubmatch(line); c != nil {
				p.blocks = append(p.blocks, block{line: i + 1, order: c[1]})
			} else {
				prose.WriteString(line)
			}
		}
		prose.WriteByte('\n')
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", path, open.line)
	}
	p.prose = prose.String()
	return p
}

func settings(info string) map[string]string {
	found := map[string]string{}
	for _, m := range setting.FindAllStringSubmatch(info, -1) {
		found[m[1]] = strings.Trim(m[2], `"`)
	}
	return found
}

// at names a line of a page for a failure's message.
func (p page) at(line int) string { return fmt.Sprintf("%s:%d", p.path, line) }

// span is a piece of inline code.
type span struct {
	line int
	text string
}

var inline = regexp.MustCompile("`([^`]+)`")

func (p page) spans() []span {
	var found []span
	for _, m := range inline.FindAllStringSubmatchIndex(p.prose, -1) {
		found = append(found, span{
			line: 1 + strings.Count(p.prose[:m[0]], "\n"),
			text: strings.Join(strings.Fields(p.prose[m[2]:m[3]]), " "),
		})
	}
	return found
}

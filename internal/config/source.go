package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is the file while it is read, and afterwards for its places.
type source struct {
	file     string
	dir      string
	data     []byte
	env      func(string) (string, bool)
	readFile func(string) ([]byte, error)

	places   map[Path]Place // of every value that is written in the file
	literals []string       // secrets in plain text, masked wherever lines are shown
	problems Problems
	warnings Problems
}

// Option changes how a configuration is read.
type Option func(*source)

// WithEnv replaces the process's environment.
func WithEnv(lookup func(string) (string, bool)) Option {
	return func(s *source) { s.env = lookup }
}

// WithDir makes relative paths start at dir instead of the file's folder.
func WithDir(dir string) Option { return func(s *source) { s.dir = dir } }

// Load reads and checks a file. The error is a [Problems], or says why the
// file can't be read.
func Load(path string, opts ...Option) (*Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the configuration: %w: name the file with -c", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(path, data, opts...)
}

// Parse checks the text of a file that is called name. Relative paths in it
// start at that file's folder.
func Parse(name string, data []byte, opts ...Option) (*Config, error) {
	src := &source{
		file: name, dir: filepath.Dir(name), data: data,
		env: os.LookupEnv, readFile: os.ReadFile,
		places: map[Path]Place{},
	}
	for _, o := range opts {
		o(src)
	}
	src.data = []byte(strings.TrimPrefix(string(src.data), "\ufeff"))
	cfg := &Config{src: src}
	if root := parseYAML(src); root != nil {
		decode(src, root, cfg)
		check(src, cfg)
	}
	if len(src.problems) > 0 {
		return nil, src.finish(src.problems)
	}
	cfg.Warnings = src.finish(src.warnings)
	return cfg, nil
}

// At is where a key stands in the file. A key that is left out is placed at
// the nearest one above it that is there.
func (c *Config) At(path Path) Place { return c.src.at(path) }

// Problem is an error or a warning about a key, for checks that need more
// than this package knows.
func (c *Config) Problem(path Path, format string, args ...any) Problem {
	p := Problem{Place: c.At(path), Path: string(path), Message: fmt.Sprintf(format, args...)}
	return c.src.finish(Problems{p})[0]
}

func (s *source) at(path Path) Place {
	for {
		if p, ok := s.places[path]; ok {
			return p
		}
		cut := strings.LastIndexAny(string(path), ".[")
		if cut < 0 {
			return Place{File: s.file, Line: 1, Column: 1}
		}
		path = path[:cut]
	}
}

// has says whether a value is written in the file.
func (s *source) has(path Path) bool {
	_, ok := s.places[path]
	return ok
}

// add reports a key, unless something is known to be wrong with it already:
// one mistake is one message.
func (s *source) add(path Path, format string, args ...any) {
	if slices.ContainsFunc(s.problems, func(p Problem) bool { return p.Path == string(path) }) {
		return
	}
	s.problems = append(s.problems, Problem{Place: s.at(path), Path: string(path), Message: fmt.Sprintf(format, args...)})
}

func (s *source) addAt(line, column int, path Path, message string) {
	s.problems = append(s.problems, Problem{
		Place: Place{s.file, line, column}, Path: string(path), Message: message,
	})
}

func (s *source) warn(path Path, format string, args ...any) {
	s.warnings = append(s.warnings, Problem{Place: s.at(path), Path: string(path), Message: fmt.Sprintf(format, args...)})
}

// hide masks a value, and all in it, wherever its line is shown.
func (s *source) hide(n *node) {
	if len(n.text) >= shortest {
		s.literals = append(s.literals, n.text)
	}
	for _, i := range n.items {
		s.hide(i)
	}
	for _, e := range n.entries {
		s.hide(e.value)
	}
}

// shortest is how long a text is that is masked: a shorter one would mask
// pieces of other words.
const shortest = 4

// finish sorts problems and shows each with its line.
func (s *source) finish(ps Problems) Problems {
	lines := strings.Split(string(s.data), "\n")
	for i := range ps {
		if n := ps[i].Line; n >= 1 && n <= len(lines) {
			ps[i].Source, ps[i].mark = s.mask(strings.TrimRight(lines[n-1], "\r"), ps[i].Column)
		}
	}
	return ps.sorted()
}

// secretKey finds what looks like a secret in plain text, also under a
// mistyped key; secretURL and urlQuery what stands before the @ of an address
// and after its question mark.
var (
	secretKey = regexp.MustCompile(`(?i)([\w-]*(?:secret|token|passw|pasw|pwd|nkey|auth|api-?key|cookie)[\w-]*["']?[ \t]*:[ \t]*)([^\s{\[][^\s,}\]]*)`)
	secretURL = regexp.MustCompile(`://[^/@\s"']+@`)
	urlQuery  = regexp.MustCompile(`(://[^?\s"']*\?)([^\s"'#]+)`)
	signing   = regexp.MustCompile(`whsec_[A-Za-z0-9+/=_-]+`)
)

// mask hides the secrets of a line, each behind stars that don't tell its
// length, and returns with it where the column of the original is then.
func (s *source) mask(line string, column int) (string, int) {
	for _, l := range s.literals {
		line = strings.ReplaceAll(line, l, blank(l))
	}
	line = signing.ReplaceAllStringFunc(line, blank)
	line = secretURL.ReplaceAllStringFunc(line, func(m string) string { return "://" + blank(m[3:len(m)-1]) + "@" })
	line = urlQuery.ReplaceAllStringFunc(line, func(m string) string {
		parts := urlQuery.FindStringSubmatch(m)
		return parts[1] + blank(parts[2])
	})
	line = secretKey.ReplaceAllStringFunc(line, func(m string) string {
		parts := secretKey.FindStringSubmatch(m)
		value := strings.Trim(parts[2], `"'`)
		if strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:") {
			return m
		}
		return parts[1] + blank(parts[2])
	})
	before, after := split(line, column-1)
	if strings.HasSuffix(before, hidden) { // inside of a secret: the mark goes to its first star
		before = strings.TrimRight(before, hidden)
		after = hidden + after
	}
	before, after = stars(before), stars(after)
	return before + after, len([]rune(before)) + 1
}

// hidden stands for one character of a secret while its line still has its
// length; no YAML may contain it.
const hidden = "\x00"

func blank(s string) string { return strings.Repeat(hidden, len([]rune(s))) }

var runs = regexp.MustCompile(hidden + "+")

// stars makes each run of what is hidden the same few stars.
func stars(s string) string { return runs.ReplaceAllString(s, "*****") }

// split cuts a text behind its first n characters.
func split(s string, n int) (before, after string) {
	r := []rune(s)
	n = max(0, min(n, len(r)))
	return string(r[:n]), string(r[n:])
}

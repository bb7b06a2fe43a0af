// Package tracks reads recorded positions from files: CSV, NDJSON and GPX,
// plain or gzipped, told apart by their content. It streams: a file is never
// in memory as a whole.
package tracks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tripline/tripline/geofence"
)

// Row is one fix of a file. It is valid until the next call of Next.
type Row struct {
	Fix geofence.Fix
	// TS is the time as the file has it, so that it can be printed unchanged.
	TS []byte
	// Line is where the fix begins, from 1.
	Line int
}

// Options says how a file is read. The zero value is right for most.
type Options struct {
	// Device is the device of every row that names none. A GPX track names
	// none; without this it is called after its file.
	Device string
	// TrackNames takes a GPX track's own name as its device.
	TrackNames bool
	// Stdin is what the path - stands for; nil means the process's.
	Stdin io.Reader
}

// RowError is a row that is no fix. The reader can go on after it.
type RowError struct {
	File string
	Line int
	Msg  string
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Format is what a file was found to be.
type Format string

// The formats.
const (
	CSV    Format = "CSV"
	NDJSON Format = "NDJSON"
	GPX    Format = "GPX"
)

// Reader reads the fixes of one file. It is not safe for concurrent use, but
// for Consumed.
type Reader struct {
	name    string
	format  Format
	rows    rows
	closer  io.Closer
	counted *counter
	size    int64
}

// rows is what each format does. next returns io.EOF at the end, a *RowError
// for a bad row, and any other error where nothing more can be read.
type rows interface {
	next() (*Row, error)
}

// Open opens a file; - is standard input.
func Open(path string, o Options) (*Reader, error) {
	if path == "-" {
		in := o.Stdin
		if in == nil {
			in = os.Stdin
		}
		return NewReader(in, "standard input", o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the track file: %w", err)
	}
	r, err := NewReader(f, path, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		r.size = info.Size()
	}
	return r, nil
}

// bufferSize is also the longest line that is taken.
const bufferSize = 1 << 20

// NewReader reads from in; name is what errors call it.
func NewReader(in io.Reader, name string, o Options) (*Reader, error) {
	r := &Reader{name: name, counted: &counter{in: in}}
	// A small buffer here keeps Consumed near the row at hand.
	br := bufio.NewReaderSize(r.counted, 32<<10)
	if head, _ := br.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("%s: reading gzip: %w", name, err)
		}
		br = bufio.NewReaderSize(unzipped, bufferSize)
	} else {
		br = bufio.NewReaderSize(br, bufferSize)
	}
	first, err := start(br)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines := &lines{in: br, name: name}
	names := interner{}
	switch first {
	case '<':
		r.format, r.rows = GPX, newGPX(br, name, o)
	case '{':
		r.format, r.rows = NDJSON, &ndjsonRows{lines: lines, names: names, device: o.Device}
	default:
		r.format = CSV
		if r.rows, err = newCSV(lines, names, o.Device); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// start skips a byte-order mark and white space, and returns the first byte
// of the content without taking it.
func start(br *bufio.Reader) (byte, error) {
	head, err := br.Peek(3)
	switch {
	case len(head) == 0 && err == io.EOF:
		return 0, errors.New("the file is empty")
	case err != nil && err != io.EOF:
		return 0, err
	case bytes.Equal(head, []byte("\xef\xbb\xbf")):
		br.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return 0, errors.New("the file is UTF-16: save it as UTF-8")
	}
	// White space before XML or JSON is skipped; lines are counted from here
	// on, so a line break is left alone.
	peek, _ := br.Peek(64)
	for _, c := range peek {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '[':
			return 0, errors.New("the file is a JSON list: write one object a line, as jq -c '.[]' does")
		}
		return c, nil
	}
	return 0, nil
}

// Next returns the next fix. The error is io.EOF at the end; after a
// [*RowError] the reader can go on; any other error is final.
func (r *Reader) Next() (*Row, error) { return r.rows.next() }

// Format is what the file was found to be.
func (r *Reader) Format() Format { return r.format }

// Size is the file's size in bytes, as stored; 0 if it is unknown.
func (r *Reader) Size() int64 { return r.size }

// Consumed is how many bytes of the stored file have been read so far. Any
// goroutine may call it.
func (r *Reader) Consumed() int64 { return r.counted.n.Load() }

// Close closes the file.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

type counter struct {
	in io.Reader
	n  atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// interner gives each device one string, so that rows don't allocate.
type interner map[string]string

func (in interner) get(b []byte) string {
	if s, ok := in[string(b)]; ok {
		return s
	}
	s := string(b)
	in[s] = s
	return s
}

// lines reads a text line by line, and counts.
type lines struct {
	in   *bufio.Reader
	name string
	n    int // of the line read last
}

// next returns a line without its end, valid until the next call.
func (l *lines) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	switch {
	case err == nil:
	case err == io.EOF && len(line) > 0:
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, l.skip()
	case err == io.EOF:
		return nil, io.EOF
	default:
		return nil, fmt.Errorf("%s:%d: %w", l.name, l.n+1, err)
	}
	l.n++
	return bytes.TrimRight(line, "\r\n"), nil
}

// skip passes over a line that is too long.
func (l *lines) skip() error {
	l.n++
	for {
		_, err := l.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && err != io.EOF:
			return fmt.Errorf("%s:%d: %w", l.name, l.n, err)
		}
		return l.bad("the line is longer than 1 MiB")
	}
}

func (l *lines) bad(format string, args ...any) error {
	return &RowError{File: l.name, Line: l.n, Msg: fmt.Sprintf(format, args...)}
}

// deviceFromFile is a file's name without folder and endings.
func deviceFromFile(name string) string {
	base := filepath.Base(name)
	base = strings.TrimSuffix(base, ".gz")
	return strings.TrimSuffix(base, filepath.Ext(base))
}

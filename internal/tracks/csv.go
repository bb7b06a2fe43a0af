package tracks

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

// The columns of a CSV file; the names after the first are other people's.
const (
	colDevice = iota
	colTS
	colLat
	colLon
	colAccuracy
	colSpeed
	colHeading
	colAlt
	columns
)

var columnNames = [columns][]string{
	colDevice:   {"device", "device_id", "deviceid", "id"},
	colTS:       {"ts", "time", "timestamp", "tst"},
	colLat:      {"lat", "latitude"},
	colLon:      {"lon", "lng", "long", "longitude"},
	colAccuracy: {"accuracy", "acc", "accuracy_m"},
	colSpeed:    {"speed", "speed_mps"},
	colHeading:  {"heading", "course", "bearing"},
	colAlt:      {"alt", "altitude", "ele", "elevation"},
}

var optional = [columns]geofence.Fields{
	colAccuracy: geofence.HasAccuracy, colSpeed: geofence.HasSpeed,
	colHeading: geofence.HasHeading, colAlt: geofence.HasAlt,
}

// csvRows reads a table whose first line names the columns, in any order.
// Columns that it doesn't know are passed over.
type csvRows struct {
	lines  *lines
	names  interner
	device string
	comma  byte
	at     [columns]int // the field that a column is in; -1: not there
	width  int          // how many fields a row has

	fields [][]byte // of the row at hand
	joined []byte   // a row that goes on over several lines
	plain  []byte   // its fields without their quotes
	row    Row
}

func newCSV(l *lines, names interner, device string) (*csvRows, error) {
	c := &csvRows{lines: l, names: names, device: device, comma: ','}
	var head []byte
	for len(bytes.TrimSpace(head)) == 0 {
		var err error
		if head, err = l.next(); err == io.EOF {
			return nil, fmt.Errorf("%s: the file is empty", l.name)
		} else if err != nil {
			return nil, err
		}
	}
	for _, other := range []byte{';', '\t'} {
		if bytes.IndexByte(head, ',') < 0 && bytes.IndexByte(head, other) >= 0 {
			c.comma = other
		}
	}
	if err := c.split(head); err != nil {
		return nil, err
	}
	return c, c.header()
}

func (c *csvRows) header() error {
	c.width = len(c.fields)
	for col := range c.at {
		c.at[col] = -1
		for i, f := range c.fields {
			name := strings.ToLower(strings.TrimSpace(string(f)))
			if !slices.Contains(columnNames[col], name) {
				continue
			}
			if c.at[col] >= 0 {
				return c.lines.bad("the column %s is there twice", columnNames[col][0])
			}
			c.at[col] = i
		}
	}
	for _, col := range []int{colDevice, colTS, colLat, colLon} {
		if c.at[col] >= 0 || col == colDevice && c.device != "" {
			continue
		}
		return fmt.Errorf("%w: the first line must name the columns, as in device,ts,lat,lon", c.lines.bad("there is no column %s", columnNames[col][0]))
	}
	return nil
}

func (c *csvRows) next() (*Row, error) {
	for {
		line, err := c.lines.next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		c.row.Line = c.lines.n
		if err := c.split(line); err != nil {
			return nil, err
		}
		if err := c.read(); err != nil {
			return nil, c.bad(err)
		}
		return &c.row, nil
	}
}

func (c *csvRows) bad(err error) error {
	return &RowError{File: c.lines.name, Line: c.row.Line, Msg: words(err)}
}

// read fills the row from its fields.
func (c *csvRows) read() error {
	if len(c.fields) > c.width && c.comma == ',' {
		return fmt.Errorf("the row has %d fields, the first line names %d; numbers take a decimal point, and what holds a comma stands in quotes", len(c.fields), c.width)
	}
	if len(c.fields) != c.width {
		return fmt.Errorf("the row has %d fields, the first line names %d", len(c.fields), c.width)
	}
	f := &c.row.Fix
	*f = geofence.Fix{Device: c.device}
	if i := c.at[colDevice]; i >= 0 && len(c.fields[i]) > 0 {
		f.Device = c.names.get(c.fields[i])
	}
	if f.Device == "" {
		return fmt.Errorf("device is empty")
	}
	c.row.TS = c.fields[c.at[colTS]]
	if len(c.row.TS) == 0 {
		return fmt.Errorf("ts is empty")
	}
	var err error
	if f.TS, err = ingest.ParseTS(c.row.TS); err != nil {
		return err
	}
	if f.Lat, err = parseNumber("lat", c.fields[c.at[colLat]]); err != nil {
		return err
	}
	if f.Lon, err = parseNumber("lon", c.fields[c.at[colLon]]); err != nil {
		return err
	}
	if err := ingest.CheckPosition(f.Lat, f.Lon); err != nil {
		return err
	}
	for col := colAccuracy; col < columns; col++ {
		i := c.at[col]
		if i < 0 || len(c.fields[i]) == 0 {
			continue
		}
		v, err := parseNumber(columnNames[col][0], c.fields[i])
		if err != nil {
			return err
		}
		if err := setOptional(f, optional[col], v); err != nil {
			return err
		}
	}
	return nil
}

// split cuts a row into its fields.
func (c *csvRows) split(line []byte) error {
	c.fields = c.fields[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		return c.splitQuoted(line)
	}
	for {
		i := bytes.IndexByte(line, c.comma)
		if i < 0 {
			c.fields = append(c.fields, line)
			return nil
		}
		c.fields = append(c.fields, line[:i])
		line = line[i+1:]
	}
}

// splitQuoted does the same where there are quotes: they may hold the
// separator, doubled quotes, and line breaks.
func (c *csvRows) splitQuoted(line []byte) error {
	first := c.lines.n
	if bytes.Count(line, []byte{'"'})%2 == 1 {
		c.joined = append(c.joined[:0], line...)
		for bytes.Count(c.joined, []byte{'"'})%2 == 1 {
			more, err := c.lines.next()
			if err == io.EOF || err == nil && len(c.joined)+len(more) > bufferSize {
				return &RowError{File: c.lines.name, Line: first, Msg: "a quote is not closed"}
			}
			if err != nil {
				return err
			}
			c.joined = append(append(c.joined, '\n'), more...)
		}
		line = c.joined
	}
	// plain never grows beyond the line, so the fields in it stay where they are.
	c.plain = slices.Grow(c.plain[:0], len(line)+1)
	for {
		from := len(c.plain)
		quoted := false
		for len(line) > 0 && (quoted || line[0] != c.comma) {
			switch {
			case line[0] != '"':
				c.plain = append(c.plain, line[0])
			case quoted && len(line) > 1 && line[1] == '"':
				c.plain = append(c.plain, '"')
				line = line[1:]
			default:
				quoted = !quoted
			}
			line = line[1:]
		}
		c.fields = append(c.fields, c.plain[from:len(c.plain):len(c.plain)])
		if len(line) == 0 {
			return nil
		}
		line = line[1:]
	}
}

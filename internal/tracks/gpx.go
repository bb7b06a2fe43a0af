package tracks

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

// gpxRows reads the track points of a GPX 1.0 or 1.1 file, whatever other
// namespaces are in it. Waypoints and routes have no course in time and are
// passed over.
type gpxRows struct {
	dec        *xml.Decoder
	name       string
	device     string // fixed by the caller, or called after the file
	trackNames bool
	track      string // the name of the track at hand
	inTrack    bool
	points     int
	passed     int // waypoints and route points
	row        Row
	ended      error
}

func newGPX(in io.Reader, name string, o Options) *gpxRows {
	g := &gpxRows{dec: xml.NewDecoder(in), name: name, device: o.Device, trackNames: o.TrackNames}
	if g.device == "" {
		g.device = deviceFromFile(name)
	}
	g.dec.CharsetReader = charset
	return g
}

// charset reads the two encodings besides UTF-8 that GPX files come in.
func charset(label string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "iso-8859-1", "latin1", "us-ascii", "windows-1252":
		return &latin1{in: in}, nil
	}
	return nil, fmt.Errorf("encoding %s is not taken: save the file as UTF-8", label)
}

type latin1 struct {
	in   io.Reader
	rest []byte
}

func (l *latin1) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		raw := make([]byte, 4096)
		n, err := l.in.Read(raw)
		if n == 0 {
			return 0, err
		}
		for _, b := range raw[:n] {
			l.rest = append(l.rest, string(rune(b))...)
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (g *gpxRows) line() int {
	line, _ := g.dec.InputPos()
	return line
}

func (g *gpxRows) next() (*Row, error) {
	for g.ended == nil {
		tok, err := g.dec.Token()
		if err != nil {
			g.ended = g.end(err)
			break
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if row, err := g.open(t); row != nil || err != nil {
				return row, err
			}
		case xml.EndElement:
			if t.Name.Local == "trk" {
				g.inTrack = false
			}
		}
	}
	return nil, g.ended
}

// end says why there is nothing more to read.
func (g *gpxRows) end(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: no valid XML: %s", g.name, syntax.Line, syntax.Msg)
	case err != io.EOF:
		return fmt.Errorf("%s:%d: %w", g.name, g.line(), err)
	case g.points == 0 && g.passed > 0:
		return fmt.Errorf("%s has %d waypoints or route points and no track: only tracks are read, they have times", g.name, g.passed)
	case g.points == 0:
		return fmt.Errorf("%s has no track points", g.name)
	}
	return io.EOF
}

func (g *gpxRows) open(t xml.StartElement) (*Row, error) {
	switch t.Name.Local {
	case "trk":
		g.inTrack, g.track = true, ""
	case "name":
		if g.inTrack && g.track == "" {
			name, err := g.text()
			if err != nil {
				return nil, nil // the next token says what is wrong
			}
			g.track = name
		}
	case "wpt", "rtept":
		g.passed++
	case "trkpt":
		g.points++
		return g.point(t)
	}
	return nil, nil
}

// point reads one trkpt up to its end.
func (g *gpxRows) point(t xml.StartElement) (*Row, error) {
	g.row = Row{Line: g.line(), TS: g.row.TS[:0]}
	bad := func(err error) (*Row, error) {
		return nil, &RowError{File: g.name, Line: g.row.Line, Msg: words(err)}
	}
	f := &g.row.Fix
	f.Device = g.device
	if g.trackNames && g.track != "" {
		f.Device = g.track
	}
	lat, lon := "", ""
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "lat":
			lat = a.Value
		case "lon":
			lon = a.Value
		}
	}
	problem := g.children(f)
	if g.ended != nil {
		return nil, g.ended
	}
	if problem != nil {
		return bad(problem)
	}
	var err error
	if f.Lat, err = parseNumber("lat", []byte(lat)); err != nil {
		return bad(err)
	}
	if f.Lon, err = parseNumber("lon", []byte(lon)); err != nil {
		return bad(err)
	}
	if err := ingest.CheckPosition(f.Lat, f.Lon); err != nil {
		return bad(err)
	}
	if len(g.row.TS) == 0 {
		return bad(errors.New("the track point has no time"))
	}
	if f.TS, err = ingest.ParseTS(g.row.TS); err != nil {
		return bad(err)
	}
	return &g.row, nil
}

// children reads what is inside a trkpt, also in extensions.
func (g *gpxRows) children(f *geofence.Fix) (problem error) {
	for depth := 1; depth > 0; {
		tok, err := g.dec.Token()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			g.ended = g.end(err)
			return nil
		}
		t, ok := tok.(xml.StartElement)
		if !ok {
			if _, end := tok.(xml.EndElement); end {
				depth--
			}
			continue
		}
		which, known := gpxFields[t.Name.Local]
		if !known {
			depth++
			continue
		}
		text, err := g.text()
		if err != nil {
			g.ended = g.end(err)
			return nil
		}
		switch {
		case which == 0:
			g.row.TS = append(g.row.TS[:0], text...)
		case text != "":
			v, err := parseNumber(t.Name.Local, []byte(text))
			if err == nil {
				err = setOptional(f, which, v)
			}
			if err != nil {
				problem = err
			}
		}
	}
	return problem
}

// gpxFields are the elements of a point that are read: GPX 1.0 has speed and
// course itself, in 1.1 they come in extensions. time is 0.
var gpxFields = map[string]geofence.Fields{
	"time": 0, "ele": geofence.HasAlt, "speed": geofence.HasSpeed,
	"course": geofence.HasHeading, "accuracy": geofence.HasAccuracy,
}

// text reads an element up to its end and returns the text in it.
func (g *gpxRows) text() (string, error) {
	var b strings.Builder
	for depth := 1; depth > 0; {
		tok, err := g.dec.Token()
		if err != nil {
			return "", err
		}
		switch t := tok.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	return strings.TrimSpace(b.String()), nil
}

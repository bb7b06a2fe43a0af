package tracks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tripline/tripline/geofence"
)

// ndjsonRows reads one JSON object a line: a location's keys, and device.
type ndjsonRows struct {
	lines  *lines
	names  interner
	device string
	row    Row
	object ndjsonObject
}

type ndjsonObject struct {
	Device   string          `json:"device"`
	TS       json.RawMessage `json:"ts"`
	Lat      *float64        `json:"lat"`
	Lon      *float64        `json:"lon"`
	Accuracy *float64        `json:"accuracy"`
	Speed    *float64        `json:"speed"`
	Heading  *float64        `json:"heading"`
	Alt      *float64        `json:"alt"`
	Props    json.RawMessage `json:"props"`
}

func (n *ndjsonRows) next() (*Row, error) {
	for {
		line, err := n.lines.next()
		if err == io.EOF || err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		n.row.Line = n.lines.n
		n.object = ndjsonObject{}
		if err := json.Unmarshal(line, &n.object); err != nil {
			return nil, n.lines.bad("%v", jsonWords(err))
		}
		if err := n.read(); err != nil {
			return nil, n.lines.bad("%v", err)
		}
		return &n.row, nil
	}
}

func jsonWords(err error) string {
	switch e := err.(type) {
	case *json.SyntaxError:
		return fmt.Sprintf("no JSON object: %v at byte %d", e, e.Offset)
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("%s can't be a JSON %s", e.Field, e.Value)
	}
	return err.Error()
}

func (n *ndjsonRows) read() error {
	o, f := &n.object, &n.row.Fix
	*f = geofence.Fix{Device: n.device}
	if o.Device != "" {
		f.Device = n.names.get([]byte(o.Device))
	}
	switch {
	case f.Device == "":
		return fmt.Errorf("device is missing")
	case len(o.TS) == 0 || string(o.TS) == "null":
		return fmt.Errorf("ts is missing")
	case o.Lat == nil || o.Lon == nil:
		return fmt.Errorf("lat or lon is missing")
	}
	n.row.TS = o.TS
	if o.TS[0] == '"' {
		var text string
		if err := json.Unmarshal(o.TS, &text); err != nil {
			return err
		}
		n.row.TS = []byte(text)
	}
	var err error
	if f.TS, err = parseTime(n.row.TS); err != nil {
		return err
	}
	f.Lat, f.Lon = *o.Lat, *o.Lon
	if err := checkPlace(f.Lat, f.Lon); err != nil {
		return err
	}
	for which, v := range map[geofence.Fields]*float64{
		geofence.HasAccuracy: o.Accuracy, geofence.HasSpeed: o.Speed,
		geofence.HasHeading: o.Heading, geofence.HasAlt: o.Alt,
	} {
		if v != nil {
			setOptional(f, which, *v)
		}
	}
	if len(o.Props) > 0 && string(o.Props) != "null" {
		if o.Props[0] != '{' {
			return fmt.Errorf("props must be a JSON object")
		}
		f.Props = o.Props
	}
	return nil
}

package tracks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

// ndjsonRows reads one location payload a line, with its device in it.
type ndjsonRows struct {
	lines  *lines
	names  interner
	device string
	row    Row
}

// ndjsonHead is what a payload in a file needs besides what it needs anyway.
type ndjsonHead struct {
	Device json.RawMessage `json:"device"`
	ID     json.RawMessage `json:"id"`
	TS     json.RawMessage `json:"ts"`
	Tst    json.RawMessage `json:"tst"` // OwnTracks' ts
}

func (n *ndjsonRows) next() (*Row, error) {
	for {
		line, err := n.lines.next()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		n.row.Line = n.lines.n
		switch err := n.read(line); {
		case errors.Is(err, ingest.ErrIgnored):
			continue
		case err != nil:
			return nil, n.lines.bad("%s", words(err))
		}
		return &n.row, nil
	}
}

func (n *ndjsonRows) read(line []byte) error {
	var head ndjsonHead
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("no JSON object: %w", err)
	}
	f := &n.row.Fix
	*f = geofence.Fix{Device: n.device}
	for _, id := range []json.RawMessage{head.Device, head.ID} {
		if text := plain(id); len(text) > 0 {
			f.Device = n.names.get(text)
			break
		}
	}
	if f.Device == "" {
		return errors.New("device is missing")
	}
	if n.row.TS = plain(head.TS); len(n.row.TS) == 0 {
		n.row.TS = plain(head.Tst)
	}
	// The line is read again by the decoder of payloads: one set of rules.
	if err := ingest.Decode(line, f); err != nil {
		return err
	}
	if len(n.row.TS) == 0 {
		return errors.New("ts is missing")
	}
	return nil
}

// plain is a JSON value as text: a string without its quotes, a number as it
// is; nothing for null.
func plain(v json.RawMessage) []byte {
	switch {
	case len(v) == 0 || string(v) == "null":
		return nil
	case v[0] != '"':
		return v
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		return nil
	}
	return []byte(s)
}

package tracks

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/ingest"
)

func parseNumber(key string, b []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(b)), 64)
	if err != nil || f-f != 0 {
		if point, ok := decimalComma(b); ok {
			return 0, fmt.Errorf("%s %q has a decimal comma; write a decimal point: %s", key, clip(b), point)
		}
		return 0, fmt.Errorf("%s %q is no number", key, clip(b))
	}
	return f, nil
}

// decimalComma says whether a text would be a number with a point in the place
// of its only comma, and which.
func decimalComma(b []byte) (string, bool) {
	whole, fraction, ok := strings.Cut(string(bytes.TrimSpace(b)), ",")
	point := whole + "." + fraction
	_, err := strconv.ParseFloat(point, 64)
	return clip([]byte(point)), ok && err == nil
}

// clip keeps the quotes of bad input short.
func clip(b []byte) string {
	if len(b) > 60 {
		return string(b[:60]) + "..."
	}
	return string(b)
}

// words is what is wrong with a row, without the reason's label.
func words(err error) string {
	if r, ok := errors.AsType[*ingest.Refusal](err); ok {
		return r.Detail
	}
	return err.Error()
}

// setOptional sets one of the optional fields of a fix, by the rules for
// payloads: phones write a negative speed or heading for one that they don't
// know, and a negative accuracy for a position that isn't valid.
func setOptional(f *geofence.Fix, which geofence.Fields, v float64) error {
	switch which {
	case geofence.HasAccuracy:
		if v < 0 {
			return fmt.Errorf("accuracy %v is negative: the device says that its position is not valid", v)
		}
		f.Accuracy = v
	case geofence.HasSpeed:
		if v < 0 {
			return nil
		}
		f.Speed = v
	case geofence.HasHeading:
		if v > 360 {
			return fmt.Errorf("heading %v is outside 0..360", v)
		}
		if v < 0 {
			return nil
		}
		f.Heading = v
	case geofence.HasAlt:
		f.Alt = v
	}
	f.Has |= which
	return nil
}

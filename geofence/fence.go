package geofence

import "encoding/json"

// Fence is a named area with properties. It is immutable.
type Fence struct {
	ID, Name string
	Tags     []string
	Props    json.RawMessage
	Revision uint64
}

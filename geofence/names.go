package geofence

// String is the kind's name: enter, exit, dwell, cross, inside or silent.
func (k Kind) String() string {
	switch k {
	case Enter:
		return "enter"
	case Exit:
		return "exit"
	case Dwell:
		return "dwell"
	case Cross:
		return "cross"
	case Inside:
		return "inside"
	case Silent:
		return "silent"
	}
	return "unknown"
}

// ParseKind returns the kind of a name; false if it is none.
func ParseKind(name string) (Kind, bool) {
	for k := Enter; k <= Silent; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// String is the result's name: accepted, buffered, late, duplicate, future,
// accuracy or teleport.
func (r Result) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case Buffered:
		return "buffered"
	case Late:
		return "late"
	case Duplicate:
		return "duplicate"
	case Future:
		return "future"
	case Inaccurate:
		return "accuracy"
	case Teleport:
		return "teleport"
	}
	return "unknown"
}

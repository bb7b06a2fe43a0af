package lease

// Home is where a process runs: enough to tell, from within the same home,
// whether it still does. The zero Home is unknown.
type Home struct {
	// Host names a running kernel and a space of process ids on it.
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
}

// outlives says that a process that ran in the other home has surely ended:
// it was on this host, under an id that nobody has any more. So the
// successor of a process that crashed need not wait for the end of its leases.
func (h Home) outlives(other Home) bool {
	return h.Host != "" && h.Host == other.Host && other.PID != h.PID && !exists(other.PID)
}

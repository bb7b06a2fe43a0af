package breaker

import "cmp"

// Candidate is a queue head that could be sent as a probe.
type Candidate struct {
	// Failed is when a probe with it last failed, counted up from 1 by
	// failures; 0 if none did.
	Failed uint64
	// Priority: higher first.
	Priority int
	// Oldest is its position in the queue: lower first.
	Oldest uint64
}

// CompareCandidates orders the candidates for the next probe, best first; it
// is meant for slices.MinFunc. What has not failed as a probe comes before
// what has, so that one poisonous head can't hold a consumer open: it is tried
// again only when every other has failed since. Then priority, then age.
func CompareCandidates(a, b Candidate) int {
	return cmp.Or(
		cmp.Compare(a.Failed, b.Failed),
		-cmp.Compare(a.Priority, b.Priority),
		cmp.Compare(a.Oldest, b.Oldest),
	)
}

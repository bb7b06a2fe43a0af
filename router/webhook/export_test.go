package webhook

import "time"

// SetNow sets the clock that attempts are stamped with.
func (s *Sink) SetNow(now func() time.Time) { s.now = now }

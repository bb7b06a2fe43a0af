package natssink

// Flushes counts the flushes that were begun.
func (s *Publish) Flushes() int {
	s.flush.mu.Lock()
	defer s.flush.mu.Unlock()
	return s.flush.rounds
}

package geofence

// AlwaysSearch makes the tracker do without the boxes in which nothing can
// change.
func (t *Tracker) AlwaysSearch() { t.searches = true }

//go:build !linux

package lease

// ThisHome returns the home of this process, which can't be told here: a
// replica counts as gone only when its leases have ended.
func ThisHome() Home { return Home{} }

func exists(int) bool { return true }

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/tripline/tripline/geofence"
)

// loadFences reads fence files. What is wrong in any of them comes back
// together, each with its file and place.
func loadFences(files []string) ([]*geofence.Fence, error) {
	var all []*geofence.Fence
	var errs []error
	from := map[string]string{} // fence id: its file
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the fences: %w", err))
			continue
		}
		fences, err := geofence.ParseFences(data)
		if err != nil {
			errs = append(errs, placed(file, err))
			continue
		}
		for _, f := range fences {
			if first, dup := from[f.ID]; dup {
				errs = append(errs, fmt.Errorf("%s: fence %q is in %s as well: ids are unique over all files", file, f.ID, first))
				continue
			}
			from[f.ID] = file
			all = append(all, f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{err}
	}
	return all, nil
}

// placed puts the file before each problem of a joined error.
func placed(file string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s:%w", file, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, fmt.Errorf("%s:%w", file, e))
	}
	return errors.Join(errs...)
}

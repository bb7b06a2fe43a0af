package app

import (
	"fmt"

	"github.com/tripline/tripline/geofence"
	"github.com/tripline/tripline/internal/config"
	"github.com/tripline/tripline/internal/fencekv"
	"github.com/tripline/tripline/internal/ingest"
	"github.com/tripline/tripline/internal/natsconn"
	"github.com/tripline/tripline/router"
)

// maxCarried is how much of a fence fits into its triggers, in bytes: with the
// largest location, and ids and headers of 32 KiB, they fit into a message of
// the least server that is accepted. A trigger that didn't could neither be
// parked nor become a dead letter.
const maxCarried = natsconn.MinPayload - ingest.MaxPayload - 32<<10

// checkCarried refuses a fence whose triggers might be too large to be kept.
func checkCarried(f *geofence.Fence) error {
	body := router.AppendBody(nil, "", "", "", &geofence.Transition{Kind: geofence.Enter, Fence: f})
	if n := len(body); n > maxCarried {
		return fmt.Errorf("fence %q: its name, tags and properties go with each of its triggers and take %v; at most %v are allowed: shorten the properties",
			f.ID, config.Size(n), config.Size(maxCarried))
	}
	return nil
}

// withoutHeavy moves the fences of an update whose triggers might be too large
// to its problems.
func withoutHeavy(u fencekv.Update) fencekv.Update {
	for id, f := range u.Fences {
		if f == nil {
			continue
		}
		if err := checkCarried(f); err != nil {
			delete(u.Fences, id)
			u.Problems = append(u.Problems, err)
		}
	}
	return u
}

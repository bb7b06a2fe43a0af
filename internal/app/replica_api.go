package app

import "net/http"

// shownReplicas is what this process knows of the replicas.
type shownReplicas struct {
	// Leased: the partitions are divided among replicas. Otherwise this
	// process runs all of them.
	Leased     bool           `json:"leased"`
	Self       string         `json:"self,omitempty"`
	Valid      bool           `json:"valid"` // its leases can be relied on
	Replicas   []shownReplica `json:"replicas"`
	Partitions []string       `json:"partitions"` // names by partition, "" for nobody
	Here       []int          `json:"here"`       // the partitions that this process runs
	// Breakers is what other replicas have last said of theirs, by consumer
	// and name.
	Breakers map[string]map[string]otherView `json:"breakers,omitempty"`
}

type shownReplica struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Admin      string `json:"admin"`
	Leaving    bool   `json:"leaving"`
	Partitions int    `json:"partitions"`
}

func (s *service) replicaAPI(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/replicas", apiFunc(s.getReplicas))
}

func (s *service) getReplicas(*http.Request) (any, error) {
	shown := shownReplicas{Valid: true, Replicas: []shownReplica{}, Here: []int{}}
	for number := range s.held.each() {
		shown.Here = append(shown.Here, number)
	}
	shown.Partitions = make([]string, s.held.total())
	if s.keeper == nil {
		for p := range shown.Partitions {
			shown.Partitions[p] = instance()
		}
		return shown, nil
	}
	v := s.keeper.View()
	shown.Breakers = s.roster.parts.breakers.views(v.Replicas)
	shown.Leased, shown.Self, shown.Valid = true, v.Self, v.Valid
	for _, r := range v.Replicas {
		of := shownReplica{ID: r.ID, Name: r.Name, Admin: r.Admin, Leaving: r.Leaving}
		for p, owner := range v.Owners {
			if owner == r.ID {
				shown.Partitions[p] = r.Name
				of.Partitions++
			}
		}
		shown.Replicas = append(shown.Replicas, of)
	}
	return shown, nil
}

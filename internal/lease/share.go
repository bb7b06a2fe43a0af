package lease

import "slices"

// share says who should have each partition: as evenly as it goes, with as
// few moves as that takes. owners is who has them now, "" for nobody;
// replicas are those who may have any. Whoever looks at the same owners and
// replicas gets the same answer, and the answer stays the same while it is
// being carried out. Without replicas all is "".
func share(owners []string, replicas []string) []string {
	target := make([]string, len(owners))
	if len(replicas) == 0 {
		return target
	}
	quota := quotas(len(owners), replicas)
	// Everybody keeps the first of what they have.
	var loose []int
	for p, owner := range owners {
		if quota[owner] > 0 {
			target[p] = owner
			quota[owner]--
			continue
		}
		loose = append(loose, p)
	}
	takers := slices.Sorted(slices.Values(replicas))
	for _, p := range loose {
		for quota[takers[0]] == 0 {
			takers = takers[1:]
		}
		target[p] = takers[0]
		quota[takers[0]]--
	}
	return target
}

// quotas divides n among the replicas; what can't be divided goes to the
// first by id, which are the oldest: it must not depend on what each has, or
// the answer would change on the way.
func quotas(n int, replicas []string) map[string]int {
	quota := make(map[string]int, len(replicas))
	for i, r := range slices.Sorted(slices.Values(replicas)) {
		quota[r] = n / len(replicas)
		if i < n%len(replicas) {
			quota[r]++
		}
	}
	return quota
}

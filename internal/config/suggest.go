package config

import "fmt"

// didYouMean finds the known word that is nearest to a mistyped one, and puts
// it as " (did you mean ...?)". Both are "" when none is near.
func didYouMean(word string, known []string) (question, near string) {
	best, bestDistance := "", max(1, (len(word)+1)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return "", ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best), best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	const width = 64
	if len(a) >= width || len(b) >= width {
		return width
	}
	var rows [3][width]int // before the last, last, this
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[0][j-2]+1)
			}
			rows[2][j] = d
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}

package app

import "testing"

func TestSpans(t *testing.T) {
	for want, numbers := range map[string][]int{
		"": nil, "3": {3}, "0-1": {0, 1}, "0-4 7 9-15": {0, 1, 2, 3, 4, 7, 9, 10, 11, 12, 13, 14, 15},
	} {
		if got := spans(numbers); got != want {
			t.Errorf("%v: got %q, want %q", numbers, got, want)
		}
	}
}

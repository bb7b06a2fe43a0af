package app

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacerSaysOneOfAKindAndCountsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(10 * time.Second)
		var said []int
		say := func(kind string, times int) {
			for range times {
				p.say(kind, func(unsaid int) { said = append(said, unsaid) })
			}
		}
		say("a", 1000)
		say("b", 2)
		time.Sleep(9 * time.Second)
		say("a", 1)
		time.Sleep(time.Second)
		say("a", 3)
		time.Sleep(10 * time.Second)
		say("a", 1)
		say("b", 1)
		if want := []int{0, 0, 1000, 2, 1}; !slices.Equal(said, want) {
			t.Errorf("said %v, want %v", said, want)
		}
	})
}

package natssink_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripline/tripline/router/natssink"
)

func FuzzToken(f *testing.F) {
	for _, id := range []string{"", "truck-7", "alice.phone", "a*>b", "\x00\xff", strings.Repeat("é", 100), " "} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		got := natssink.Token(id)
		if got == "" || len(got) > 128 || !utf8.ValidString(got) ||
			strings.ContainsAny(got, ".*> \t\r\n") || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q becomes %q, which is no token", id, got)
		}
		if again := natssink.Token(got); again != got {
			t.Errorf("%q becomes %q, and that %q", id, got, again)
		}
	})
}

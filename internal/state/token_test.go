package state

import (
	"testing"
)

func TestTokenGoesBothWays(t *testing.T) {
	for id, want := range map[string]string{
		"van7":          "van7",
		"fleet.van-7_x": "fleet=2Evan-7_x",
		"a=b":           "a=3Db",
		"*.>":           "=2A=2E=3E",
		"ü \n":          "=C3=BC=20=0A",
		"":              "",
	} {
		if got := token(id); got != want {
			t.Errorf("token(%q) = %q, want %q", id, got, want)
		}
		if got, err := untoken(want); err != nil || got != id {
			t.Errorf("untoken(%q) = %q, %v; want %q", want, got, err, id)
		}
	}
}

func TestUntokenTakesOnlyWhatTokenGives(t *testing.T) {
	for _, tok := range []string{"a.b", "=", "=2", "=2e", "=41", "a=ZZ", "ü"} {
		if id, err := untoken(tok); err == nil {
			t.Errorf("untoken(%q) = %q", tok, id)
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add("fleet.van7")
	f.Add("=2E")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := untoken(token(s)); err != nil || id != s {
			t.Errorf("untoken(token(%q)) = %q, %v", s, id, err)
		}
		if id, err := untoken(s); err == nil && token(id) != s {
			t.Errorf("%q and %q both stand for %q", s, token(id), id)
		}
	})
}
